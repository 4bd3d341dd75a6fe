package plugin

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// A slow cable, and cables that carry nothing behind it, are a line each of OpenSM's log
// and of ours, once for as long as they last.
func TestCables(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(5, 6))
	whole := snapshotOf(f, rnd)
	at := func(s *Snapshot, name string, num int) *Port {
		i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Description == name })
		return &s.Ports[int(s.Nodes[i].First)+num]
	}
	slow := *whole
	slow.Ports = slices.Clone(whole.Ports)
	for _, p := range []*Port{at(&slow, "leaf 3", 12), at(&slow, "spine 3", 4)} {
		p.Speed = fabric.SDR
	}
	off := slow
	off.Ports = slices.Clone(slow.Ports)
	host := at(&off, "leaf 5", 1)
	at(&off, off.Nodes[host.Peer].Description, 1).Peer, host.Peer = -1, -1

	o := open(t, "incremental: true")
	said := func(s *Snapshot, engine string) string {
		t.Helper()
		tables := short.Must(o.Route(o.engine(engine), s))(t)
		o.lines = nil
		o.Written(tables)
		return strings.Join(o.lines[1:], "\n")
	}
	const cable = `slow cable: "leaf 3"[12] to "spine 3"[4] is 4xSDR, while other links of both ends or of their neighbours are 4xQDR`
	for i, tc := range []struct {
		s      *Snapshot
		engine string
		want   string
	}{
		{whole, "fattree", ""},
		{&slow, "fattree", "2 ibweave-fattree: " + cable},
		{&slow, "fattree", ""},
		{copied(&slow), "fattree", ""},
		{&off, "fattree", ""},
		{whole, "fattree", ""},
		{&slow, "fattree", "2 ibweave-fattree: " + cable},
	} {
		if got := said(tc.s, tc.engine); got != tc.want {
			t.Errorf("step %d: OpenSM's log has\n%s\nwant\n%s", i, got, tc.want)
		}
	}
	if err := o.Close(); err != nil { // it has all lines then
		t.Fatal(err)
	}
	log := short.Must(os.ReadFile(filepath.Join(o.dir, "ibweave.log")))(t)
	if n := strings.Count(string(log), "slow cable: "); n != 2 || !strings.Contains(string(log), "no cable is slower than its peers") || !strings.Contains(string(log), "max_relative_load") {
		t.Errorf("%d lines of our log: %s", n, log)
	}
}

// That many cables carry nothing is a line when it begins, whatever the figures do then;
// a few are none.
func TestIdleCables(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f = withLIDs(t, f, err)
	o := open(t, "")
	tables := short.Must(o.Route(o.engine("fattree"), snapshotOf(f, rand.New(rand.NewPCG(5, 6)))))(t)
	for i, tc := range []struct {
		severity verify.Severity
		message  string
		want     string
	}{
		{verify.Note, "2 of 64 channels", ""},
		{verify.Warning, "40 of 64 channels", "2 ibweave-fattree: 40 of 64 channels"},
		{verify.Warning, "39 of 64 channels", ""},
		{verify.Note, "2 of 64 channels", ""},
		{verify.Warning, "38 of 64 channels", "2 ibweave-fattree: 38 of 64 channels"},
	} {
		x, v := *tables, *tables.Verify
		v.Findings = nil
		v.Add(verify.Finding{Rule: verify.IdleLinks, Severity: tc.severity, Message: tc.message})
		x.Verify, x.snapshot = &v, copied(tables.snapshot)
		o.lines = nil
		o.Written(&x)
		if got := strings.Join(o.lines[1:], "\n"); got != tc.want {
			t.Errorf("step %d: OpenSM's log has %q, want %q", i, got, tc.want)
		}
	}
}

// copied is the same subnet in another place.
func copied(s *Snapshot) *Snapshot {
	c := *s
	c.Nodes, c.Ports = slices.Clone(s.Nodes), slices.Clone(s.Ports)
	return &c
}
