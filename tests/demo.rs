//! The demo is the fault table, run through a real MCP client, a real MQTT connection and the relay itself.

use truetwin::{demo, names::Lang};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_agrees_with_the_fault_table_and_the_relay() {
    let agreed = demo::run(Lang::En, true, std::future::pending()).await.expect("the demo can be given");
    assert!(agreed, "see the table above");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn also_in_chinese() {
    let agreed = demo::run(Lang::Zh, true, std::future::pending()).await.expect("the demo can be given");
    assert!(agreed, "see the table above");
}
