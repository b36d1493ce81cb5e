"""Sensors, on planted files and on this machine."""

from pathlib import Path

import pytest

from kvtier.kit import sensors
from kvtier.kit.sensors import Log, Sensors
from kvtier.measure import kept


def plant(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


FILES = {
    "proc/self/status": "Cpus_allowed_list:\t0-1\n",
    "proc/cpuinfo": "".join(f"processor\t: {core}\nflags\t: fpu\ncpu MHz\t\t: {mhz}\n\n" for core, mhz in enumerate((2000.5, 3000.5, 900))),
    "proc/loadavg": "1.25 0.5 0.1 1/200 7\n",
    "proc/stat": "cpu  100 0 50 800 10 0 0 40 3 0\ncpu0 1 2 3\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2100000\n",
    "sys/class/hwmon/hwmon10/name": "other\n",
    "sys/class/hwmon/hwmon2/name": "k10temp\n",
    "sys/class/hwmon/hwmon2/temp1_input": "61500\n",
    "sys/class/hwmon/hwmon2/temp1_label": "Tctl\n",
    "sys/class/hwmon/hwmon2/power1_input": "45000000\n",
    "sys/class/thermal/thermal_zone0/temp": "40000\n",
    "sys/class/thermal/thermal_zone0/type": "acpitz\n",
}
GPU = "0, 1980, 2619, 51, 302.10\n1, 1980, [N/A], 48, [N/A]\n"


def values_of(readings):
    return {reading.sensor: (reading.value, reading.unit) for reading in readings}


def test_every_kind_is_read(tmp_path):
    plant(tmp_path, FILES)
    readings, missing = Sensors(tmp_path, lambda: GPU).read()
    found = values_of(readings)
    assert missing == []
    assert found["core clock, lowest"] == (2000.5, "MHz")
    # Core 2 is not this process's.
    assert found["core clock, highest"] == (3000.5, "MHz")
    assert found["core clock by cpufreq, median"] == (2100.0, "MHz")
    assert found["temperature, k10temp Tctl"] == (61.5, "°C")
    assert found["temperature, acpitz thermal_zone0"] == (40.0, "°C")
    assert found["power, k10temp power1"] == (45.0, "W")
    assert found["load of one minute"] == (1.25, "tasks")
    assert found["GPU 0 power"] == (302.1, "W")
    assert found["GPU 1 temperature"] == (48.0, "°C")
    assert "GPU 1 power" not in found


def test_what_cannot_be_read_is_named(tmp_path):
    plant(tmp_path, {"proc/self/status": "Cpus_allowed_list:\t0\n"})
    readings, missing = Sensors(tmp_path, lambda: None).read()
    assert readings == []
    assert len(missing) == 6
    assert "temperature (hwmon, thermal zones)" in missing


def test_sensor_that_fails_when_it_is_read_is_left_out(tmp_path):
    plant(tmp_path, FILES | {"sys/class/hwmon/hwmon2/temp1_input": "", "sys/class/thermal/thermal_zone0/temp": "hot"})
    assert "temperature (hwmon, thermal zones)" in Sensors(tmp_path, lambda: None).read()[1]


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def log(tmp_path):
    plant(tmp_path, FILES)
    return Log("stream", Sensors(tmp_path, lambda: None), Clock())


def test_progress_reads_at_most_once_in_two_seconds(log):
    log.before()
    for seconds in (0.5, 1.9, 2.0, 3.0, 4.1):
        log.now.seconds = seconds
        log.during()
    log.after()
    loads = log.table().filter(sensor="load of one minute")
    assert loads["moment"].to_list() == ["before", "during", "during", "after"]
    assert kept.SENSORS.check(log.table()).height == log.table().height


def test_stolen_time_is_that_of_the_part(log):
    log.before()
    plant(log.sensors.root, {"proc/stat": "cpu  150 0 50 800 10 0 0 90 3 0\n"})
    log.after()
    rows = log.table().filter(unit="%")
    assert rows["value"].to_list() == [pytest.approx(50.0)]
    assert rows["moment"].to_list() == ["after"]


def test_stolen_time_that_is_not_counted_is_named(tmp_path):
    log = Log("stream", Sensors(tmp_path, lambda: None))
    log.before()
    log.after()
    assert "time stolen by the hypervisor (/proc/stat)" in log.not_readable


def test_summary_by_sensor_and_moment(log):
    log.before()
    log.now.seconds = 5
    plant(log.sensors.root, {"proc/loadavg": "3.0 1 1"})
    log.during()
    log.now.seconds = 9
    plant(log.sensors.root, {"proc/loadavg": "4.0 1 1"})
    log.during()
    found = sensors.summed_up(log.table())["load of one minute"]
    assert found["unit"] == "tasks"
    assert found["before"]["median"] == 1.25
    assert found["during"] == {"readings": 2, "lowest": 3.0, "median": 3.5, "highest": 4.0}
    assert "after" not in found


def test_this_machine_has_a_load():
    readings, missing = Sensors().read()
    if Path("/proc/loadavg").exists():
        assert values_of(readings)["load of one minute"][0] >= 0
    else:
        assert "load" in missing
