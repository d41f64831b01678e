# One command for each thing that people and CI do here. All set-up is done by the targets themselves, into .build and target.
.DEFAULT_GOAL := help
.PHONY: sim soak load fuzz fuzz-hub help setup setup-lint unit binary demo clients test bench faults mutants lint fmt clippy docs deny shell python clean
SHELL := /bin/bash

BUILD := .build
VENV := $(BUILD)/venv/bin
BINARY := target/ci/truetwin
# The Inspector's Node first; and nothing that a test starts may write into the caller's home.
CLIENT_ENV := PATH="$(CURDIR)/$(BUILD)/npm/node_modules/.bin:$(CURDIR)/$(VENV):$$PATH" HOME="$(CURDIR)/$(BUILD)/home" TRUETWIN="$(CURDIR)/$(BINARY)"

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

test: ## everything that CI runs, in order, stopping at the first failing part; does its own set-up
	@tests/setup/parts.sh setup unit binary soak demo clients

setup: ## Debian packages that are missing (root or sudo); .build/venv, .build/npm, .build/conformance
	@tests/setup/debian.sh
	@tests/setup/python.sh
	@tests/setup/node.sh

unit: ## the tests in Rust
	cargo test --workspace --locked --profile ci

binary: ## target/ci/truetwin; together with the tests, so that nothing is built twice with other features
	cargo build --workspace --locked --profile ci --bins --tests

demo: binary ## the minute of the README: a healthy device, then one with each fault
	$(BINARY) demo --exit

clients: ## other people's MCP and MQTT clients, firmware in Python and MicroPython, Prometheus, against the binary
	@mkdir -p $(BUILD)/home
	$(CLIENT_ENV) $(VENV)/python -m pytest -n 4 tests/clients

faults: ## every row of the fault table through real MCP and MQTT, as a table
	cargo test --workspace --quiet --locked --profile ci --test faults -- --nocapture

sim: ## houses from seeds, with faults, crashes and power cuts; planted mistakes; every order of events in the small. SEEDS=n FIRST=n
	cargo test --quiet --locked --profile ci --package truetwin-proof --test proof -- --nocapture

soak: binary ## hub and devices as processes, killed and held, with a bad network, disk and clock; MINUTES=n (2), SEED=n (200)
	MINUTES=$(or $(MINUTES),2) SEED=$(or $(SEED),200) cargo test --workspace --quiet --locked --profile ci --test soak -- --nocapture what_is_said

fuzz: ## codec and sessions under random packets, guided by coverage; MINUTES=n (3) in all, TARGETS="codec differences session"
	@tests/setup/fuzz.sh $(or $(MINUTES),3) $(TARGETS)

load: ## many connections at the program as released: DEVICES=n (5000) that stay, a STORM=n (1000) after a restart, STRANGERS=n (10000)
	DEVICES=$(or $(DEVICES),5000) STORM=$(or $(STORM),1000) STRANGERS=$(or $(STRANGERS),10000) cargo test --quiet --locked --profile bench --test load -- --nocapture --test-threads=1

fuzz-hub: ## garbage at a running hub, over MQTT and HTTP, while others' calls go on; MINUTES=n (2), SEED=n
	MINUTES=$(or $(MINUTES),2) $(if $(SEED),SEED=$(SEED)) cargo test --workspace --quiet --locked --profile ci --test attacks -- --nocapture fuzz

mutants: ## takes branches out of the twin, one at a time, and says which no test misses; FILE=predicate.rs for one file
	@tests/setup/mutants.sh $(FILE)

bench: ## what tool calls cost on this machine, beside the floor under them; STRICT=1 fails on a missed target
	@PATH="$$PATH:/usr/sbin" command -v mosquitto > /dev/null || tests/setup/debian.sh || echo "bench: goes on without mosquitto"
	cargo bench --locked --bench hub

lint: ## format, clippy, rustdoc, licences and advisories, shell and Python
	@tests/setup/parts.sh setup-lint fmt clippy docs shell python deny

setup-lint:
	@tests/setup/python.sh lint
	@tests/setup/deny.sh

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

shell:
	$(VENV)/shellcheck --external-sources --source-path=SCRIPTDIR .ci/run tests/setup/*.sh

python:
	$(VENV)/ruff check --quiet --config tests/setup/ruff.toml tests/clients firmware/python firmware/micropython
	$(VENV)/ruff format --check --quiet --config tests/setup/ruff.toml tests/clients

deny:
	@if $(BUILD)/cargo/bin/cargo-deny fetch db > $(BUILD)/deny.log 2>&1; then $(BUILD)/cargo/bin/cargo-deny check; \
	else printf 'lint: ADVISORIES WERE NOT CHECKED: the advisory database cannot be fetched (%s). The rest is.\n' $(BUILD)/deny.log; \
	     $(BUILD)/cargo/bin/cargo-deny --offline check licenses bans sources; fi

clean: ## takes away .build; target stays
	rm -rf $(BUILD)
