//! (ingress)
