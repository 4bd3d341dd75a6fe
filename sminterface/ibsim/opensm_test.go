package ibsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

func TestRunOpenSM(t *testing.T) {
	short.NeedPrograms(t)
	f := mesh4x4(t)
	s, twin := startTwin(t, f)
	dir := t.TempDir()
	var lines []LogLine
	run := short.Must(RunOpenSM(t.Context(), s, OpenSMConfig{Engine: "dor", Dir: dir, Flags: 0x47, Options: []string{"qos TRUE"},
		Line: func(l LogLine) { lines = append(lines, l) }}))(t)
	if run.Engine != "dor" || !run.UP || run.NumErrors != 0 || run.Version == "" || run.Dir != dir {
		t.Errorf("run %+v", run)
	}
	if !slices.ContainsFunc(lines, func(l LogLine) bool { return l.Level == 0x02 && l.Message == "SUBNET UP" }) {
		t.Errorf("no SUBNET UP in %d lines", len(lines))
	}
	for _, name := range []string{"opensm-lfts.dump", "opensm-sl2vl.dump", "cache/guid2lid"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	// OpenSM keeps the LIDs that the fabric has.
	data := short.Must(os.ReadFile(filepath.Join(dir, "cache", "guid2lid")))(t)
	ranges, _ := short.Must2(dump.ReadGUID2LID("guid2lid", data, dump.Options{}))(t)
	for _, r := range ranges {
		if p := twin.Fabric.LIDPort(r.Min); p == fabric.NoPort || twin.Fabric.PortGUID(p) != r.Port {
			t.Errorf("LID %d is %s, which is not its owner in the fabric", r.Min, r.Port)
		}
	}
	short.Equal(t, len(ranges), 32, "LIDs, want 32")
}

// Without a fallback, OpenSM would try a file that it does not take for ever.
func TestNotUp(t *testing.T) {
	short.NeedPrograms(t)
	s, _ := startTwin(t, mesh4x4(t))
	bad := filepath.Join(t.TempDir(), "bad")
	short.Check(t, os.WriteFile(bad, []byte("Unicast lids [0-1] of switch Lid 1 guid 0x0000000000200000 ('x'):\n0x0001 200\n"), 0o600))
	run, err := RunOpenSM(t.Context(), s, OpenSMConfig{Engine: "file,no_fallback", LFTs: bad})
	if !errors.Is(err, ErrNotUp) || run == nil || run.UP || run.Engine != "" || run.NumErrors < 2 || !strings.Contains(err.Error(), "No routing engine able") {
		t.Errorf("%+v, %v", run, err)
	}
	// With one, it has minhop's, whatever its exit status.
	run, err = RunOpenSM(t.Context(), s, OpenSMConfig{Engine: "file", LFTs: bad})
	if err != nil || run.Engine != "minhop" || !run.UP {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestTimeout(t *testing.T) {
	short.NeedPrograms(t)
	s, _ := startTwin(t, mesh4x4(t))
	// A program that never attaches: ibsim ends when a client is gone in the middle of that (sim_ctl_new_client), and how
	// soon OpenSM begins with it depends on the machine.
	never := filepath.Join(t.TempDir(), "never")
	short.Check(t, os.WriteFile(never, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	for _, limit := range []time.Duration{1, time.Millisecond} {
		run, err := RunOpenSM(t.Context(), s, OpenSMConfig{Timeout: limit, Program: never})
		if !errors.Is(err, context.DeadlineExceeded) || run != nil && run.UP {
			t.Errorf("%+v, %v", run, err)
		}
	}
	// The place of one that is killed once it is attached is free.
	o := short.Must(StartOpenSM(t.Context(), s, OpenSMConfig{}))(t)
	short.Check(t, o.Process.Kill())
	_ = o.Stop()
	if run, err := RunOpenSM(t.Context(), s, OpenSMConfig{}); err != nil || !run.UP {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestParseLogLine(t *testing.T) {
	for _, c := range []struct {
		line string
		want LogLine
		ok   bool
	}{
		{"Nov 21 04:08:19 209755 [2D14D740] 0x03 -> OpenSM 3.3.23", LogLine{3, "OpenSM 3.3.23"}, true},
		{"Nov 21 04:08:19 000001 [1] 0x80 -> a -> b", LogLine{0x80, "a -> b"}, true},
		{"Nov 21 04:08:19 000001 [1] 0x01 -> ", LogLine{1, ""}, true},
		{"Nov 21 04:08:19 1000000 [1] 0x01 -> late", LogLine{}, false},
		{"Nov 21 04:08:19 000001 [1] 0x100 -> no such level", LogLine{}, false},
		{"Nov 21 04:08:19 000001 0x01 -> no thread", LogLine{}, false},
		{"****************** ENTERING SM MASTER STATE ******************", LogLine{}, false},
		{"Nov 21 04:08:19", LogLine{}, false},
		{"", LogLine{}, false},
	} {
		got, ok := parseLogLine([]byte(c.line))
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %+v, %v, want %+v, %v", c.line, got, ok, c.want, c.ok)
		}
	}
}

// Log and console come in pieces of any size.
func TestPieces(t *testing.T) {
	const log = "Dec 31 23:59:59 999999 [1] 0x03 -> OpenSM 9.9\n" +
		"Jan 01 00:00:00 000000 [2] 0x80 -> Entering MASTER state\n\n***\n" +
		"Jan 01 00:00:01 000000 [2] 0x04 -> ucast_mgr_route: building routing with 'x' routing algorithm...\n" +
		"Jan 01 00:00:02 000000 [2] 0x01 -> a: ERR 1\nJan 01 00:00:02 500000 [2] 0x02 -> osm_ucast_mgr_process: x tables configured on all switches\n" +
		"Jan 01 00:00:03 000000 [2] 0x02 -> SUBNET UP\n" +
		"Jan 01 00:00:03 500000 [3] 0x01 -> sm_process: ERR 1A02: Ignoring received mad - since we are exiting\n" +
		"Jan 01 00:00:03 600000 [3] 0x01 -> mcast_mgr_set_mft_block: ERR 0A02: Sending multicast fwd. tbl. block 0x0 to S failed (IB_INSUFFICIENT_RESOURCES)\n" +
		"Jan 01 00:00:04 000000 [3] 0x01 -> b: ERR 2"
	for size := 1; size <= len(log); size++ {
		var run OpenSMRun
		w := newLogWatch(&run, nil)
		for chunk := range slices.Chunk([]byte(log), size) {
			w.lines.add(chunk)
		}
		w.takeLastLine()
		if run.Version != "9.9" || !run.UP ||
			run.NumErrors != 2 || run.Errors[0] != "a: ERR 1" || run.Engine != "x" {
			t.Fatalf("in pieces of %d: %+v", size, run)
		}
	}
	const console = "parsing: x\n####\nNetwork simulator ready.\nsim> one\ntwo\n\nsim> " + endMark + "sim> "
	for size := 1; size <= len(console); size++ {
		c := console
		o := consoleOf(t, []byte(c), size)
		short.EqualList(t, o, []string{"one", "two", ""}, "in pieces of", size)
	}
}

func consoleOf(t *testing.T, text []byte, size int) (lines []string) {
	t.Helper()
	c := console{ready: make(chan struct{})}
	at := bytes.Index(text, []byte("sim> "))
	for chunk := range slices.Chunk(text[:at], size) {
		c.Write(chunk)
	}
	select {
	case <-c.ready:
	default:
		t.Fatal("not ready")
	}
	done := c.expect(func(line []byte) { lines = append(lines, string(line)) })
	for chunk := range slices.Chunk(text[at:], size) {
		c.Write(chunk)
	}
	select {
	case <-done:
	default:
		t.Fatalf("no end in pieces of %d", size)
	}
	return lines
}

func FuzzParseLogLine(f *testing.F) {
	f.Add([]byte("Nov 21 04:08:19 209755 [2D14D740] 0x03 -> OpenSM 3.3.23"))
	f.Add([]byte("Feb 29 04:08:19 000000 [2D14D740] 0x01 -> x: ERR 0A17: y"))
	f.Add([]byte(" -> "))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, ok := parseLogLine(line)
		if !ok && l != (LogLine{}) {
			t.Errorf("not a line, but %+v", l)
		}
		if ok && !bytes.HasSuffix(line, []byte(" -> "+l.Message)) {
			t.Errorf("message %q of %q", l.Message, line)
		}
		var run OpenSMRun
		w := newLogWatch(&run, nil)
		w.lines.add(line)
		w.takeLastLine()
	})
}

// Sweep returns when what has changed before is in the switches. An OpenSM that
// is killed lets Sweep say so.
func TestSweep(t *testing.T) {
	short.NeedPrograms(t)
	s, twin := startTwin(t, mesh4x4(t))
	dir := t.TempDir()
	o := short.Must(StartOpenSM(t.Context(), s, OpenSMConfig{Dir: dir, Flags: 0x43, Env: []string{"IBWEAVE_TEST=sweep"}, Options: []string{"sweep_interval 0"}}))(t)
	if env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(o.Process.Pid), "environ")); err != nil || !bytes.Contains(env, []byte("\x00IBWEAVE_TEST=sweep\x00")) {
		t.Errorf("OpenSM's environment: %q, %v", env, err)
	}
	host := fabric.NodeID(twin.Fabric.NumSwitches())
	lid := twin.Fabric.LID(twin.Fabric.CAPorts()[0])
	row := []byte(fmt.Sprintf("\n%#04x ", uint16(lid)))
	for range 3 {
		at := twin.Fabric.Peer(twin.Fabric.CAPorts()[0])
		link := fmt.Sprintf("%q[%d] %q[1]", twin.NodeID(twin.Fabric.Owner(at)), twin.Fabric.Num(at), twin.NodeID(host))
		for _, there := range []bool{false, true} {
			command := fmt.Sprintf("Unlink %q[1]", twin.NodeID(host))
			if there {
				command = "Link " + link
			}
			short.Check(t, s.Console(t.Context(), command, nil))
			short.Check(t, o.Sweep(t.Context()))
			data := short.Must(os.ReadFile(filepath.Join(dir, "opensm-lfts.dump")))(t)
			short.MustEqual(t, bytes.Contains(data, row), there, command, "OpenSM has a row for LID", lid, !there)
		}
	}
	short.Check(t, syscall.Kill(o.Process.Pid, syscall.SIGKILL))
	if err := o.Sweep(t.Context()); err == nil {
		t.Error("a dead OpenSM sweeps")
	}
}
