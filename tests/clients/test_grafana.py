"""A real Prometheus scrapes the running hub and evaluates every expression of every panel: none is an error, and after some
calls none is empty. So the dashboard can't drift from the metrics."""

import json
import re
import urllib.parse

import pytest
import yaml
from home import ROOT, Process, free_port, get, until

DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))


def expressions():
    """Every (panel, expression) of every dashboard, with Grafana's own variables filled in."""
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", []):
                yield panel["title"], re.sub(r"\$__(rate_interval|range|interval)", "1m", target["expr"])


class Prometheus(Process):
    def __init__(self, folder, target):
        self.url = f"http://127.0.0.1:{free_port()}"
        config = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        super().__init__(
            [
                "prometheus",
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={self.url[7:]}",
                "--log.level=warn",
            ],
            folder / "prometheus.log",
        )
        until("Prometheus is ready", self.ready, otherwise=self.told)

    def ready(self):
        self.alive()
        try:
            return get(self.url + "/-/ready")
        except OSError:
            return False

    def query(self, expression):
        """The result of an instant query; an error of the expression fails the test with Prometheus' words."""
        answer = json.loads(get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]


def test_every_panel_shows_something(hub, sim, raw, tmp_path, keep):
    sim("lamp")
    sim("pump", "stuck")
    broken = raw("broken")
    broken.subscribe()
    broken.hello()
    hub.online("lamp", "pump", "broken")
    prometheus = keep(Prometheus(tmp_path, hub.http[7:]))
    until("the hub is scraped", lambda: prometheus.query('up{job="truetwin"} == 1'), otherwise=prometheus.told)

    def work():
        hub.call("switch_device", device="lamp", to="on")
        hub.call("switch_device", device="pump", to="on")
        hub.call("switch_device", device="nobody", to="on")
        broken.publish(b"{")

    # Rates need two scrapes on either side of a change.
    work()
    seen = prometheus.query("scrape_samples_scraped")[0]["value"][0]
    until("another scrape", lambda: prometheus.query('timestamp(up{job="truetwin"})')[0]["value"][1] > str(seen))
    work()
    empty = dict(expressions())
    assert len(empty) > 15

    def all_there():
        for panel, expression in list(expressions()):
            if prometheus.query(expression):
                empty.pop(panel, None)
        return not empty

    until("every panel has a series", all_there, otherwise=lambda: f"empty: {empty}")


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda f: f.stem)
def test_a_dashboard_fits_the_provisioned_data_source(file):
    source = yaml.safe_load((ROOT / "grafana" / "provisioning" / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ][0]["uid"]
    panels = json.loads(file.read_text())["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == source and all(
                t["datasource"]["uid"] == source for t in panel["targets"]
            )


def test_the_compose_file_mounts_what_is_there():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / "deploy" / source).exists(), f"{name}: {source}"
            else:
                assert source in compose["volumes"], f"{name}: {source}"
    provider = yaml.safe_load((ROOT / "grafana" / "provisioning" / "dashboards" / "truetwin.yaml").read_text())[
        "providers"
    ][0]
    assert any(v.split(":")[1] == provider["options"]["path"] for v in compose["services"]["grafana"]["volumes"])
