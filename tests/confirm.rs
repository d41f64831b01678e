//! What can do harm is asked about before it moves: a real hub over real HTTP, simulated locks, doors and heaters, clients
//! that ask their model and clients that show forms.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use std::{
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use house::{Caller, House, Member, until};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        Implementation, ProtocolVersion,
    },
    service::{ClientLifecycleMode, RequestContext, RunningService, serve_client_with_lifecycle},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use truetwin::{sim::Kind, twin::words::Presence};

/// A person who needs no time: for what is not about how quick a yes is.
const AT_ONCE: &str = "[confirm]\nearliest_ms = 0\n";

const FRONT_DOOR: Member = Member::new("front-door", Kind::Lock).at_speed(50.0);
const GARAGE: Member = Member::new("garage", Kind::Garage).at_speed(50.0);

async fn confirm(caller: &Caller, code: &Json) -> Json {
    caller.call("confirm_operation", json!({"code": code})).await
}

fn is_question(answer: &Json, how: &str) {
    assert_eq!(
        (&answer["result"], &answer["outcome"]),
        (&json!("ask_user"), &json!("confirmation_required")),
        "{answer}"
    );
    assert_eq!((&answer["confirm"], &answer["success"]), (&json!(how), &json!(false)), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_model_that_confirms_by_itself_is_refused() {
    let house = House::build("", &[FRONT_DOOR]).await;
    let ann = house.caller().await;
    let asked = ann.switch("front-door", "unlocked").await;
    is_question(&asked, "ask");
    let code = asked["code"].as_str().unwrap().to_owned();
    assert!(!asked["say"].as_str().unwrap().contains(&code), "{asked}");
    let at_once = confirm(&ann, &json!(code)).await;
    assert_eq!(at_once["outcome"], "code_too_early", "{at_once}");
    assert_eq!(confirm(&ann, &json!(code)).await["outcome"], "code_wrong", "it is burnt");
    assert_eq!(house.truth("front-door"), (0, true), "still locked, and never moved");
    let counted = house.hub().parts().metrics.render();
    assert!(counted.contains(r#"truetwin_refusals_total{refusal="code_too_early"} 1"#), "{counted}");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_after_a_yes_it_is_carried_out_once_as_it_was_asked() {
    let house = House::build(AT_ONCE, &[FRONT_DOOR]).await;
    let ann = house.caller().await;
    let asked = ann.switch("front-door", "unlocked").await;
    is_question(&asked, "ask");
    assert_eq!(house.truth("front-door").0, 0);
    let done = confirm(&ann, &asked["code"]).await;
    assert_eq!((&done["success"], &done["outcome"]), (&json!(true), &json!("converged")), "{done}");
    assert_eq!(done["device_state"], json!({"locked": "unlocked"}));
    assert_eq!(confirm(&ann, &asked["code"]).await["outcome"], "code_wrong", "once");
    assert_eq!(house.truth("front-door"), (1, false));
    let locked = ann.switch("front-door", "locked").await;
    assert_eq!(locked["success"], true, "the safe end is not asked about: {locked}");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_another_callers_code_releases_nothing_and_takes_nothing_away() {
    let house = House::build(AT_ONCE, &[FRONT_DOOR]).await;
    let (ann, ben) = (house.caller().await, house.caller().await);
    let hers = ann.switch("front-door", "unlocked").await;
    let his = ben.switch("front-door", "unlocked").await;
    assert_ne!(hers["code"], his["code"]);
    assert_eq!(confirm(&ben, &hers["code"]).await["outcome"], "code_wrong");
    assert_eq!(house.truth("front-door").0, 0);
    assert_eq!(confirm(&ann, &hers["code"]).await["success"], true);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_yes_that_comes_too_late_moves_nothing() {
    let house = House::build("[confirm]\nearliest_ms = 0\nlatest_ms = 1", &[GARAGE]).await;
    let ann = house.caller().await;
    let asked = ann.call("run_device_action", json!({"device": "garage", "action": "pulse"})).await;
    is_question(&asked, "ask");
    let put = Instant::now();
    until("two milliseconds have passed", async || (put.elapsed() > Duration::from_millis(2)).then_some(())).await;
    assert_eq!(confirm(&ann, &asked["code"]).await["outcome"], "code_expired");
    assert_eq!(house.truth("garage").0, 0);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_more_heat_is_asked_about_and_less_is_not() {
    let house = House::build(AT_ONCE, &[Member::new("heating", Kind::Thermostat)]).await;
    let ann = house.caller().await;
    let level = async |level: f64, how: &str| {
        ann.call("set_device_level", json!({"device": "heating", "property": "target", "level": level, "how": how}))
            .await
    };
    is_question(&level(22.0, "to").await, "ask");
    let up = level(1.0, "up_by").await;
    is_question(&up, "ask");
    assert_eq!(level(17.0, "to").await["success"], true);
    assert_eq!(level(1.0, "down_by").await["success"], true);
    let up = confirm(&ann, &up["code"]).await;
    assert_eq!((&up["success"], &up["device_state"]), (&json!(true), &json!({"target": 17.0})), "{up}");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_scene_with_a_lock_in_it_has_one_question() {
    let scene = "[[scene]]\nname = \"coming home\"\nmembers = [{ device = \"front-door\", property = \"locked\", value = false }, { device = \"lamp\", property = \"relay\", value = true }]";
    let house = House::build(&format!("{AT_ONCE}{scene}"), &[FRONT_DOOR, Member::new("lamp", Kind::Lamp)]).await;
    let ann = house.caller().await;
    let asked = ann.call("activate_scene", json!({"scene": "coming home"})).await;
    is_question(&asked, "ask");
    assert_eq!((&asked["device"], &asked["danger"]), (&json!("coming home"), &json!(["front-door"])), "{asked}");
    assert_eq!((house.truth("front-door").0, house.truth("lamp").0), (0, 0), "nothing of it has moved");
    let done = confirm(&ann, &asked["code"]).await;
    assert_eq!((&done["success"], &done["confirmed"]), (&json!(true), &json!(2)), "{done}");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_nothing_is_sent_to_a_member_of_a_scene_before_it_is_known_what_to_ask() {
    let config = format!(
        "{AT_ONCE}[timing]\nwait_online_ms = 0\njust_started_ms = 0\n[devices.front-door.properties.locked]\n\
         confirm = \"press\"\npress_with = \"bell.presses\"\n[[scene]]\nname = \"coming home\"\n\
         members = [{{ device = \"front-door\", property = \"locked\", value = false }}]"
    );
    let mut house = House::build(&config, &[Member::new("bell", Kind::Button)]).await;
    let password = house.introduce("front-door").await;
    let ann = house.caller().await;
    let home = async || ann.call("activate_scene", json!({"scene": "coming home"})).await;
    let silent = home().await;
    assert_eq!((&silent["result"], &silent["code"]), (&json!("failed"), &Json::Null), "{silent}");
    house.start(FRONT_DOOR, &password);
    house.presence("front-door", Presence::Online).await;
    is_question(&home().await, "press");
    assert_eq!(house.truth("front-door"), (0, true), "still locked, and never moved");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_garage_door_has_no_way_past_the_press_of_its_owner() {
    let config = format!(
        "{AT_ONCE}[devices.garage.properties.door]\nconfirm = \"press\"\npress_with = \"bell.presses\"\n\
         by_action = \"true = pulse, false = pulse\""
    );
    let house = House::build(&config, &[GARAGE, Member::new("bell", Kind::Button)]).await;
    let ann = house.caller().await;
    is_question(&ann.switch("garage", "open").await, "press");
    let pulse = ann.call("run_device_action", json!({"device": "garage", "action": "pulse"})).await;
    is_question(&pulse, "press");
    is_question(&confirm(&ann, &pulse["code"]).await, "press");
    assert_eq!(house.truth("garage").0, 0);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_none_is_the_owners_word_and_the_tool_is_gone_with_it() {
    let config = "[devices.front-door.properties.locked]\nconfirm = \"none\"\n[devices.lamp.properties.relay]\nconfirm = \"ask\"";
    let house = House::build(config, &[FRONT_DOOR]).await;
    let ann = house.caller().await;
    assert_eq!(ann.switch("front-door", "unlocked").await["success"], true);
    assert!(!ann.tools().await.contains(&"confirm_operation".to_owned()));
    house.take_down().await;
    let house = House::build(config, &[Member::new("lamp", Kind::Lamp)]).await;
    let ann = house.caller().await;
    is_question(&ann.switch("lamp", "on").await, "ask");
    is_question(&ann.switch("lamp", "off").await, "ask");
    assert!(ann.tools().await.contains(&"confirm_operation".to_owned()));
    house.take_down().await;
}

/// A file with a spoken code.
fn code_file(mode: u32) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "4711").unwrap();
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_spoken_code_is_never_told_and_guesses_are_counted() {
    let file = code_file(0o600);
    let config = format!(
        "{AT_ONCE}code_file = {:?}\nwrong_max = 3\n[devices.front-door.properties.locked]\nconfirm = \"spoken_code\"",
        file.path()
    );
    let house = House::build(&config, &[FRONT_DOOR]).await;
    let ann = house.caller().await;
    let asked = ann.switch("front-door", "unlocked").await;
    is_question(&asked, "spoken_code");
    assert!(asked.get("code").is_none() && !asked.to_string().contains("4711"), "{asked}");
    let wrong = confirm(&ann, &json!("1234")).await;
    assert_eq!((&wrong["outcome"], &wrong["tries_left"]), (&json!("code_wrong"), &json!(2)), "{wrong}");
    assert_eq!(confirm(&ann, &json!("四七幺一")).await["success"], true, "as a recogniser writes it");
    assert_eq!(ann.switch("front-door", "locked").await["success"], true);
    is_question(&ann.switch("front-door", "unlocked").await, "spoken_code");
    for guess in ["0000", "1111", "2222"] {
        assert_eq!(confirm(&ann, &json!(guess)).await["outcome"], "code_wrong");
    }
    let ben = house.caller().await;
    is_question(&ben.switch("front-door", "unlocked").await, "spoken_code");
    assert_eq!(confirm(&ben, &json!("4711")).await["outcome"], "rate_limited", "the door itself is locked out");
    assert_eq!(house.truth("front-door"), (2, true));
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_what_is_said_at_one_box_does_not_release_what_another_box_has_asked_for() {
    let file = code_file(0o600);
    let config = format!(
        "{AT_ONCE}code_file = {:?}\n[devices.front-door.properties.locked]\nconfirm = \"spoken_code\"\n\
         [devices.back-door.properties.locked]\nconfirm = \"spoken_code\"\n\
         [[endpoint]]\nname = \"home\"\nurl = \"ws://127.0.0.1:9/mcp/?token=t0\"\nboxes = 2",
        file.path()
    );
    let house = House::build(&config, &[FRONT_DOOR, Member { device: "back-door", ..FRONT_DOOR }]).await;
    let server = house.hub().parts().mcp_server(truetwin::mcp::Transport::Stdio);
    let boxes = server.guest(truetwin::authz::Principal::Endpoint("home".into()), "").unwrap();
    let call = async |tool: &str, arguments: Json| {
        let call = truetwin::mcp::Call::new(tool, arguments.as_object().unwrap().clone());
        server.call(&boxes, &call, &CancellationToken::new()).await.unwrap().structured
    };
    let asked = async |device: &str| call("switch_device", json!({"device": device, "to": "unlocked"})).await;
    is_question(&asked("front-door").await, "spoken_code");
    let guest = asked("back-door").await;
    is_question(&guest, "spoken_code");
    let said = call("confirm_operation", json!({"code": "4711"})).await;
    assert_eq!(said["outcome"], "code_wrong", "it was said about the front door: {said}");
    assert_eq!((house.truth("front-door").0, house.truth("back-door").0), (0, 0));
    let both = format!("{} 4711", guest["code"].as_str().unwrap());
    assert_eq!(call("confirm_operation", json!({"code": both})).await["success"], true, "with its question's word");
    assert_eq!((house.truth("front-door").0, house.truth("back-door").0), (0, 1));
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_press_by_hand_is_needed_and_no_assistant_can_press() {
    let config = format!(
        "{AT_ONCE}[devices.bell]\nname = \"bell\"\n[devices.front-door.properties.locked]\nconfirm = \"press\"\npress_with = \"bell.presses\""
    );
    let house = House::build(&config, &[FRONT_DOOR, Member::new("bell", Kind::Button)]).await;
    let ann = house.caller().await;
    let asked = ann.switch("front-door", "unlocked").await;
    is_question(&asked, "press");
    assert!(asked["say"].as_str().unwrap().contains("bell"), "{asked}");
    is_question(&confirm(&ann, &asked["code"]).await, "press");
    let finger = ann.call("run_device_action", json!({"device": "bell", "action": "press"})).await;
    assert_eq!(finger["success"], true, "{finger}");
    let state = ann.call("get_device_state", json!({"device": "bell"})).await;
    assert_eq!(state["device_state"]["presses"], 1, "{state}");
    is_question(&confirm(&ann, &asked["code"]).await, "press");
    assert_eq!(house.truth("front-door").0, 0);
    assert!(house.sim("bell").touch(None, None));
    let done = until("the press is heard of", async || {
        let told = confirm(&ann, &asked["code"]).await;
        (told["outcome"] != "confirmation_required").then_some(told)
    })
    .await;
    assert_eq!(done["success"], true, "{done}");
    house.take_down().await;
}

#[test]
fn s7_2_a_code_file_that_others_can_read_is_refused() {
    let file = code_file(0o644);
    let config = format!("[confirm]\ncode_file = {:?}", file.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(house::start_with(&config)).unwrap_err().to_string();
    assert!(error.contains("chmod 600") && !error.contains("4711"), "{error}");
}

/// A client that shows forms, and the person behind it.
#[derive(Clone)]
struct Human {
    says: ElicitResult,
    was_asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Human {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(can, Implementation::new("forms", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.was_asked.lock().unwrap().push(message);
        }
        Ok(self.says.clone())
    }
}

/// How a client begins.
fn lifecycles() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

struct Forms {
    client: RunningService<RoleClient, Human>,
    was_asked: Arc<Mutex<Vec<String>>>,
}

impl Forms {
    async fn open(house: &House, lifecycle: ClientLifecycleMode, says: ElicitResult) -> Self {
        let url = format!("http://{}/mcp", house.hub().http_addr());
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let human = Human { says, was_asked: Arc::default() };
        let was_asked = human.was_asked.clone();
        let client = serve_client_with_lifecycle(human, transport, lifecycle).await.unwrap();
        Self { client, was_asked }
    }

    async fn unlock(&self) -> Json {
        let arguments = json!({"device": "front-door", "to": "unlocked"});
        let params = CallToolRequestParams::new("switch_device").with_arguments(arguments.as_object().unwrap().clone());
        self.client.call_tool(params).await.unwrap().structured_content.unwrap()
    }

    fn was_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.was_asked.lock().unwrap())
    }
}

fn yes() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Accept).with_content(json!({"confirm": true}))
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_client_that_shows_forms_asks_the_person_itself() {
    for lifecycle in lifecycles() {
        let house = House::build("", &[FRONT_DOOR]).await;
        let forms = Forms::open(&house, lifecycle.clone(), yes()).await;
        let done = forms.unlock().await;
        assert_eq!(done["success"], true, "no 3 s are needed where a person was seen: {lifecycle:?} {done}");
        assert_eq!(forms.was_asked(), ["Do you really want the front-door to be unlocked now?"]);
        assert_eq!(house.truth("front-door"), (1, false));
        forms.client.cancel().await.unwrap();
        house.take_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_client_on_standard_input_shows_forms_as_well() {
    let house = House::build("", &[FRONT_DOOR]).await;
    let (here, there) = tokio::io::duplex(65_536);
    let server = house.hub().parts().mcp_server(truetwin::mcp::Transport::Stdio);
    let serving = tokio::spawn(async move { server.serve(here).await.unwrap().waiting().await });
    let was_asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let human = Human { says: yes(), was_asked: was_asked.clone() };
    let client = human.serve(there).await.unwrap();
    let forms = Forms { client, was_asked };
    assert_eq!(forms.unlock().await["success"], true);
    assert_eq!(forms.was_asked().len(), 1);
    forms.client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_an_answer_to_another_question_carries_out_nothing() {
    let house = House::build("", &[FRONT_DOOR]).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let forms = Forms::open(&house, ClientLifecycleMode::Discover { preferred_versions }, yes()).await;
    // What a client makes up, without having been asked or for another command.
    let said = [("confirmation".to_owned(), json!({"action": "accept", "content": {"confirm": true}}))];
    let arguments = json!({"device": "front-door", "to": "unlocked"});
    let params = CallToolRequestParams::new("switch_device")
        .with_arguments(arguments.as_object().unwrap().clone())
        .with_input_responses(said.into())
        .with_request_state("00112233445566778899aabbccddeeff");
    let answer = forms.client.call_tool(params).await.unwrap().structured_content.unwrap();
    assert_eq!(answer["outcome"], "code_wrong", "{answer}");
    assert_eq!((house.truth("front-door").0, forms.was_asked().len()), (0, 0));
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_a_no_is_a_no_however_it_is_said() {
    let house = House::build("", &[FRONT_DOOR]).await;
    for lifecycle in lifecycles() {
        for no in [
            ElicitResult::new(ElicitationAction::Decline),
            ElicitResult::new(ElicitationAction::Cancel),
            ElicitResult::new(ElicitationAction::Accept).with_content(json!({"confirm": false})),
            ElicitResult::new(ElicitationAction::Accept),
        ] {
            let forms = Forms::open(&house, lifecycle.clone(), no).await;
            let answer = forms.unlock().await;
            assert_eq!((&answer["result"], &answer["outcome"]), (&json!("failed"), &json!("declined")), "{answer}");
            assert_eq!(forms.was_asked().len(), 1);
            forms.client.cancel().await.unwrap();
        }
    }
    assert_eq!(house.truth("front-door").0, 0);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_the_form_of_a_spoken_code_has_a_place_for_it() {
    let file = code_file(0o600);
    let config = format!(
        "[confirm]\ncode_file = {:?}\n[devices.front-door.properties.locked]\nconfirm = \"spoken_code\"",
        file.path()
    );
    let house = House::build(&config, &[FRONT_DOOR]).await;
    let written = |code: &str| ElicitResult::new(ElicitationAction::Accept).with_content(json!({"code": code}));
    for (at, lifecycle) in lifecycles().into_iter().enumerate() {
        let forms = Forms::open(&house, lifecycle.clone(), written("0000")).await;
        assert_eq!(forms.unlock().await["outcome"], "code_wrong");
        let forms = Forms::open(&house, lifecycle.clone(), yes()).await;
        assert_eq!(forms.unlock().await["outcome"], "code_wrong", "a yes is no code");
        assert_eq!(house.truth("front-door").0, 2 * at as u64);
        let forms = Forms::open(&house, lifecycle, written("4711")).await;
        assert_eq!(forms.unlock().await["success"], true);
        assert_eq!(house.caller().await.switch("front-door", "locked").await["success"], true);
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_2_with_press_a_form_alone_moves_nothing() {
    let config = "[devices.front-door.properties.locked]\nconfirm = \"press\"\npress_with = \"bell.presses\"";
    let house = House::build(config, &[FRONT_DOOR, Member::new("bell", Kind::Button)]).await;
    for lifecycle in lifecycles() {
        let forms = Forms::open(&house, lifecycle, yes()).await;
        let answer = forms.unlock().await;
        is_question(&answer, "press");
        assert!(answer["code"].is_string(), "it may go on once it was pressed");
    }
    assert_eq!(house.truth("front-door").0, 0);
    house.take_down().await;
}
