package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

func TestParseConfig(t *testing.T) {
	const all = `# a comment
roots: [0x0002c90000000001, 0x2]
origin: 0x200000
dims: 16x8x4
no-wrap: true
repair: true
vls: 4
sl2vl: dateline
verify: warn
vlarb: equal
timeout: 90s
incremental: false
rebalance: 1.25
traffic: /etc/opensm/ibweave/traffic.yaml
uniform-floor: 1.5
flap: {count: 3, window: 5m, hold: 20m}
shadow: true
multicast:
  scheme: comb
  groups: /etc/opensm/ibweave/groups.json
  balance: true
log:
  file: /var/log/ibweave/plugin.log
  level: debug
  format: json
`
	want := &Config{
		File: "all", Roots: []fabric.GUID{0x2c90000000001, 2}, Origin: 0x200000, Dims: []int{16, 8, 4}, NoWrap: true, Repair: true,
		VLs: 4, SL2VL: "dateline", Verify: VerifyWarn, VLArb: ArbitrationEqual, Timeout: 90 * time.Second, Rebalance: 1.25, Traffic: "/etc/opensm/ibweave/traffic.yaml", UniformFloor: 1.5,
		Shadow:    true,
		Flap:      FlapConfig{3, 5 * time.Minute, 20 * time.Minute},
		Multicast: MulticastConfig{Scheme: "comb", Groups: "/etc/opensm/ibweave/groups.json", Balance: true},
		Log:       LogConfig{File: "/var/log/ibweave/plugin.log", Format: "json"},
	}
	short.Check(t, want.Log.Level.Set("debug"))
	got, err := ParseConfig("all", []byte(all))
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	ours, err := ParseConfig("f", []byte("roots: balanced\n"))
	if err != nil {
		t.Fatal(err)
	}
	if opt, _, err := ours.compileOptions(&fabric.Fabric{}); err != nil || !opt.Route.Balanced || opt.Route.Roots != nil {
		t.Errorf("roots: balanced is %+v, %v", opt.Route, err)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "multicast:\nlog:\n", "log: {}\n"} {
		got, err := ParseConfig("empty", []byte(empty))
		want := defaults()
		want.File = "empty"
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%q: %v %s", empty, err, cmp.Diff(want, got))
		}
	}
}

// Errors have the line and what would have been right.
func TestParseConfigErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"rebalance: 0.9\n", "f:1:11: \"0.9\"; want a number from 1 to 1000\n    rebalance: 0.9"},
		{"vls: 2\nvl: 3\n", "f:2: unknown key \"vl\"; want dims, flap, incremental, labels, log, metrics, multicast, no-wrap, origin, rebalance, repair, roots, shadow, sl2vl, timeout, traffic, uniform-floor, verify, vlarb, vls\n    vl: 3"},
		{"vls: 2\nvls: 4\n", "f:2: vls: is in line 1 already; want it once\n    vls: 4"},
		{"flap: {count: -1}\n", "f:1:14: \"-1\"; want 0 for never, or 1 to 1000 times"},
		{"vls: 3\n", "f:1:5: \"3\"; want 1, 2, 4, 8 or 15 data VLs\n    vls: 3"},
		{"vls:\n", "f:1:4: nothing; want 1, 2, 4, 8 or 15"},
		{"vls: [2]\n", "f:1:5: a list; want 1, 2, 4, 8 or 15"},
		{"multicast:\n  scheme: tree\n", "f:2:10: \"tree\"; want one of auto, union, union-merge, comb, spam, updn-tree, region, opensm\n      scheme: tree"},
		{"multicast: union\n", "f:1:11: \"union\"; want a mapping with balance, groups, scheme"},
		{"log:\n  level: loud\n", "f:2:9: \"loud\"; want one of debug, info, warn, error"},
		{"log:\n  file: plugin.log\n", "f:2:8: \"plugin.log\"; want an absolute path"},
		{"repair: 1\n", "f:1:8: \"1\"; want true or false"},
		{"repair: \"true\"\n", "f:1:8: \"true\"; want true or false"},
		{"roots: 0x1\n", "f:1:7: \"0x1\"; want a list of GUIDs"},
		{"roots: [0x1,\n  17]\n", "f:2:2: \"17\"; want a GUID like 0x0002c90000000001"},
		{"roots: [0x1, 0x01]\n", "f:1:13: 0x0000000000000001 is in the list already"},
		{"origin: 0x11112222333344445\n", "f:1:8: \"0x11112222333344445\"; want a GUID like 0x0002c90000000001"},
		{"dims: 16*16\n", "f:1:6: \"16*16\"; want sizes like 16x16"},
		{"dims: 0x4\n", "f:1:6: \"0x4\"; want sizes like 16x16"},
		{"timeout: -1s\n", "f:1:9: \"-1s\"; want a time above zero"},
		{"- vls: 2\n", "f:1: a list; want a mapping with dims,"},
		{"vls: 2\n---\nvls: 4\n", "f:2: a second document; want one configuration a file"},
		{"vls: 2\n\tdims: 4\n", "f:2: found a tab character that violates indentation; want YAML\n    \tdims: 4"},
		{"a: &x {}\nb: *x\n", "f:1:3: an anchor or an alias; write the value out"},
		{"log: *x\n", "f:1: unknown anchor 'x' referenced"},
		{"log: &x {format: *x}\n", "f:1:5: an anchor or an alias; write the value out"},
	} {
		c, err := ParseConfig("f", []byte(tc.text))
		var e *fabric.ParseError
		if c != nil || !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q: %v, %v; want %q", tc.text, c, err, tc.want)
		}
	}
}

func TestReadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	writeFile(t, file, []byte("vls: 8"))
	for _, options := range []string{"--config " + file, "--config=" + file, "  --config  " + file + " ", `"--config ` + file + `"`} {
		if c, err := readConfig(options); err != nil || c.VLs != 8 || c.File != file {
			t.Errorf("%q: %v, %v", options, c, err)
		}
	}
	for _, options := range []string{"", "(null)", `""`} {
		if c, err := readConfig(options); err != nil || c.File != "" || c.Timeout == 0 {
			t.Errorf("%q: %v, %v", options, c, err)
		}
	}
	for options, want := range map[string]string{
		"--conf " + file:         "unknown flag: --conf; want --config FILE",
		file:                     "unexpected \"" + file + "\"; want --config FILE",
		"--config":               "flag needs an argument: --config; want --config FILE",
		"--config c.yaml":        "want an absolute path",
		"--config " + file + "x": "no such file",
	} {
		if c, err := readConfig(options); c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", options, c, err, want)
		}
	}
}

// FuzzParseConfig: whatever the text, there is a configuration or an error, which
// is of the kind that has a line.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("roots: [0x1]\nvls: 2\nlog: {level: debug}\n"))
	f.Add([]byte("multicast:\n  scheme: comb\ntimeout: 1s\ndims: 4x4"))
	f.Add([]byte("a: &x [*x]\n--- !!map\n? []\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig("f", data)
		var e *fabric.ParseError
		if (c == nil) != (err != nil) || err != nil && !errors.As(err, &e) {
			t.Errorf("%v, %v", c, err)
		}
	})
}

// writeFile makes a file that has data.
func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	short.Check(t, os.WriteFile(name, data, 0o600))
}
