//! Whatever was wrong with a device: while it is, no answer says more than the relay did; once it is mended, the next wishes
//! come true. Every fault that the simulator has, the ones without a row in the fault table too, against a whole hub.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod house;

use std::rc::Rc;

use tokio::task::{LocalSet, spawn_local};
use truetwin::sim::{Fault, Kind};

use crate::house::{House, Member, break_it, until};

/// Two wishes under the fault, then mended, then on and off again.
async fn suffer(house: Rc<House>, fault: Fault) {
    let device = fault.as_str();
    let caller = house.caller().await;
    break_it(&house, device, fault);
    for to in ["on", "off"] {
        let answer = caller.switch(device, to).await;
        let (_, on) = house.truth(device);
        // Of two boards with one name the other one may have done it.
        let so = answer["success"] != true || on == (to == "on") || fault == Fault::SecondBoard;
        assert!(so, "{fault}: no_phantom_success: {answer}");
    }
    break_it(&house, device, Fault::None);
    for to in ["on", "off"] {
        until(&format!("{device} obeys again"), async || {
            let answer = caller.switch(device, to).await;
            let (_, on) = house.truth(device);
            let success = answer["success"] == true;
            // What was late may still come: then the next wish has to put it right.
            (success && on == (to == "on")).then_some(())
        })
        .await;
    }
    caller.close().await;
}

#[tokio::test]
async fn whatever_was_wrong_once_mended_the_device_obeys_again() {
    let members: Vec<Member> = Fault::ALL.iter().map(|fault| Member::new(fault.as_str(), Kind::Socket)).collect();
    let house = Rc::new(House::build("", &members).await);
    let all = async {
        let suffering: Vec<_> = Fault::ALL.iter().map(|fault| spawn_local(suffer(house.clone(), *fault))).collect();
        for one in suffering {
            one.await.unwrap();
        }
    };
    LocalSet::new().run_until(all).await;
    Rc::into_inner(house).unwrap().take_down().await;
}
