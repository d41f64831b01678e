//! MQTT packets of a client, legal and not.

pub fn text_field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
}

pub fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    let mut length = body.len();
    loop {
        let byte = (length & 0x7F) as u8;
        length >>= 7;
        out.push(if length > 0 { byte | 0x80 } else { byte });
        if length == 0 {
            break;
        }
    }
    out.extend_from_slice(body);
    out
}

/// A CONNECT, to be changed.
#[derive(Clone)]
pub struct Login {
    pub v5: bool,
    pub clean: bool,
    pub keep_alive_s: u16,
    pub client_id: Vec<u8>,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    /// Topic, payload, QoS, retain.
    pub will: Option<(Vec<u8>, Vec<u8>, u8, bool)>,
    pub properties: Vec<u8>,
}

impl Login {
    pub fn of(name: &str) -> Self {
        Self {
            v5: false,
            clean: true,
            keep_alive_s: 60,
            client_id: b"any".to_vec(),
            user: Some(name.as_bytes().to_vec()),
            password: Some(format!("pw-{name}").into_bytes()),
            will: None,
            properties: Vec::new(),
        }
    }

    pub fn v5(mut self, v5: bool) -> Self {
        self.v5 = v5;
        self
    }

    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.as_bytes().to_vec());
        self
    }

    pub fn client_id(mut self, id: &str) -> Self {
        self.client_id = id.as_bytes().to_vec();
        self
    }

    pub fn will(mut self, topic: &str, payload: &str) -> Self {
        self.will = Some((topic.as_bytes().to_vec(), payload.as_bytes().to_vec(), 1, false));
        self
    }

    pub fn keep_alive_s(mut self, seconds: u16) -> Self {
        self.keep_alive_s = seconds;
        self
    }

    pub fn properties(mut self, properties: &[u8]) -> Self {
        self.properties = properties.to_vec();
        self
    }

    pub fn packet(&self) -> Vec<u8> {
        let mut body = Vec::new();
        text_field(&mut body, b"MQTT");
        body.push(if self.v5 { 5 } else { 4 });
        let mut flags = u8::from(self.clean) << 1;
        flags |= u8::from(self.user.is_some()) << 7 | u8::from(self.password.is_some()) << 6;
        if let Some((_, _, qos, retain)) = &self.will {
            flags |= 0x04 | qos << 3 | u8::from(*retain) << 5;
        }
        body.push(flags);
        body.extend_from_slice(&self.keep_alive_s.to_be_bytes());
        if self.v5 {
            body.push(u8::try_from(self.properties.len()).unwrap());
            body.extend_from_slice(&self.properties);
        }
        text_field(&mut body, &self.client_id);
        if let Some((topic, payload, _, _)) = &self.will {
            if self.v5 {
                body.push(0);
            }
            text_field(&mut body, topic);
            text_field(&mut body, payload);
        }
        for field in [&self.user, &self.password].into_iter().flatten() {
            text_field(&mut body, field);
        }
        packet(0x10, &body)
    }
}

pub fn publish(topic: &str, qos: u8, id: u16, payload: &[u8], v5: bool) -> Vec<u8> {
    publish_with(topic, qos << 1, id, payload, v5.then_some(&[]))
}

/// A PUBLISH with these flags in its first byte and, in v5, these properties.
pub fn publish_with(topic: &str, flags: u8, id: u16, payload: &[u8], properties: Option<&[u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    text_field(&mut body, topic.as_bytes());
    if flags & 0x06 != 0 {
        body.extend_from_slice(&id.to_be_bytes());
    }
    if let Some(properties) = properties {
        body.push(u8::try_from(properties.len()).unwrap());
        body.extend_from_slice(properties);
    }
    body.extend_from_slice(payload);
    packet(0x30 | flags, &body)
}

pub fn subscribe(id: u16, filter: &str, options: u8, v5: bool) -> Vec<u8> {
    subscribe_with(id, &[filter], options, v5.then_some(&[]))
}

pub fn subscribe_with(id: u16, filters: &[&str], options: u8, properties: Option<&[u8]>) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    if let Some(properties) = properties {
        body.push(u8::try_from(properties.len()).unwrap());
        body.extend_from_slice(properties);
    }
    for filter in filters {
        text_field(&mut body, filter.as_bytes());
        body.push(options);
    }
    packet(0x82, &body)
}

pub fn unsubscribe(id: u16, filters: &[&str], v5: bool) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    if v5 {
        body.push(0);
    }
    for filter in filters {
        text_field(&mut body, filter.as_bytes());
    }
    packet(0xA2, &body)
}
