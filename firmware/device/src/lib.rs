//! device
#![no_std]
