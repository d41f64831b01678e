//! The reasons of failures, as the end of "because".

use super::operation::pick;
use crate::{names::Lang, twin::words::Reason};

/// A reason in words, as the end of "because"; `None` where the device gave none that is known.
pub(super) fn reason_words(reason: Option<Reason>, lang: Lang) -> Option<&'static str> {
    let (zh, en) = match reason? {
        Reason::Timeout => ("没有回音", "no answer"),
        Reason::Stuck => ("卡住了", "it is stuck"),
        Reason::OutOfRange => ("超出了它的范围", "out of its range"),
        Reason::Busy => ("它正忙着", "it is busy"),
        Reason::Interrupted => ("中途停下了", "it stopped half-way"),
        Reason::Expired => ("指令到得太晚", "the command came too late"),
        Reason::Superseded => ("有更新的指令", "a newer command came"),
        Reason::Withdrawn => ("指令收回了", "the command was taken back"),
        Reason::Unsupported => ("它不会做这个", "it cannot do that"),
        Reason::Malformed => ("它看不懂指令", "it could not read the command"),
        Reason::Power => ("供电不足", "not enough power"),
        Reason::ReadBackDiffers => ("读回来不一样", "it reads back otherwise"),
        Reason::DidNotHold => ("没有稳住", "it did not hold"),
        Reason::SensorDiffers => ("传感器看到的不一样", "the sensor does not agree"),
        Reason::Offline => ("它不在线", "it is offline"),
        Reason::ConnectionLost => ("断了联系", "the connection was lost"),
        Reason::DeviceRestarted => ("它中途重启", "it restarted"),
        Reason::PropertyChanged => ("它的功能变了", "it describes itself otherwise now"),
        Reason::ActorRestarted | Reason::HubStopping => ("中枢中途重启", "the hub restarted"),
        Reason::BrokerDown => ("消息通道断了", "the hub's message bus is down"),
        Reason::UnreadableReport => ("它回的话看不懂", "its report cannot be read"),
        Reason::Unknown => return None,
    };
    Some(pick(lang, zh, en))
}
