package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/cmd/ibweave-opensm/plugin"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// TestShadow runs one OpenSM with the plugin in shadow mode and one without it through the same failures and repairs:
// the switches of both have the same tables after each, ours are in a folder, and memory stays as it is.
//
//	go test ./cmd/ibweave-opensm -run TestShadow -sweeps 15000 -timeout 0    # for about half an hour
func TestShadow(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	with := start(t, f, err)
	without := startAlone(t, f, err)
	twin, err := ibsim.NewTwin(with.f)
	if err != nil {
		t.Fatal(err)
	}
	with.flags, without.flags = "0x03", "0x03"
	// A sweep begins with the entries of the one before, so both have to sweep equally often: a trap may come before
	// the sweep that the test asks for, or make one more. And no request may end as unanswered on a busy machine.
	options := []string{"sweep_on_trap FALSE", "transaction_timeout 2000", "long_transaction_timeout 4000"}
	a := with.stay(t, "ibweave-updn,ftree", "shadow: true\n", options...)
	b := without.stay(t, "ftree", "", append(options, "event_plugin_name (null)")...)
	c, d := with.dial(t), without.dial(t)
	port := func(p fabric.PortID) string {
		return fmt.Sprintf("%q[%d]", twin.NodeID(with.f.Owner(p)), with.f.Num(p))
	}
	var cables []fabric.PortID
	for s := range fabric.NodeID(with.f.NumSwitches()) {
		out, _ := with.f.SwitchLinks(s)
		cables = append(cables, out...)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	down := map[fabric.PortID]bool{}
	steps := short.Of(*sweeps/3, 4)
	var rss []int
	for i := range steps {
		p := cables[rnd.IntN(len(cables))]
		command := "Unlink " + port(p)
		if len(down) > 4 {
			p = slices.Min(slices.Collect(maps.Keys(down)))
			command = "Link " + port(p) + " " + port(with.f.Peer(p))
			delete(down, p)
		} else if down[p] || down[with.f.Peer(p)] {
			continue
		} else {
			down[p] = true
		}
		for _, s := range []*testbed{with, without} {
			if err := s.Console(t.Context(), command, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range []*daemon{a, b} {
			n := strings.Count(o.log(), "-> SUBNET UP\n")
			o.sweep()
			o.wait("-> SUBNET UP\n", n+1)
		}
		if entries, _ := differ(with.f, with.have(t, c), without.have(t, d)); len(entries) > 0 {
			t.Fatalf("step %d: %d entries are not those of OpenSM without the plugin; OpenSM with it says\n%s\nand without\n%s", i, len(entries),
				end([]byte(a.log())), end([]byte(b.log())))
		}
		rss = append(rss, residentKiB(t, a.cmd.Process.Pid))
	}
	if log := a.log(); strings.Count(log, "ibweave: not installed (shadow: true): ibweave-updn: ") <= len(rss)/2 || strings.Contains(log, "ibweave: ERR") {
		t.Errorf("OpenSM's log has %q", log)
	}
	dir := filepath.Join(with.dir, plugin.ShadowName)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if m, err := outdir.ReadManifest(dir); err == nil && m.Engine == "updn" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%+v %v", m, err)
		}
	}
	if n := len(rss); n > 100 && slices.Max(rss[3*n/4:]) > slices.Max(rss[n/4:n/2])+maxDrift {
		t.Errorf("OpenSM grows: %v KiB", rss)
	}
}
