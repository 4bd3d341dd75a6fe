package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// TestRestart kills OpenSM and starts it again, which leaves the tables of the switches as they are: not one block is written
// for the same fabric, as its log and the tables tell. For one that has changed meanwhile few are.
func TestRestart(t *testing.T) {
	for _, tc := range []struct {
		name, engine string
		make         func() (*fabric.Fabric, error)
	}{
		{"tree", "updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
		{"fattree", "fattree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}) }},
		{"auto", "auto", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}) }},
		{"two of ours", "xy,ibweave-updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
		{"LMC", "updn", func() (*fabric.Fabric, error) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
			if err != nil {
				return nil, err
			}
			return lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: 2})
		}},
		{"irregular", "layered", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 4, Hosts: 24, Seed: 4})
		}},
		{"hop", "minhop", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 24, Seed: 2})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := tc.make()
			s := start(t, f, err)
			twin := short.Must(ibsim.NewTwin(s.f))(t)
			port := func(p fabric.PortID) string { return fmt.Sprintf("%q[%d]", twin.NodeID(s.f.Owner(p)), s.f.Num(p)) }
			var cables []fabric.PortID
			for sw := range fabric.NodeID(s.f.NumSwitches()) {
				out, _ := s.f.SwitchLinks(sw)
				cables = append(cables, out...)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			ups := 0
			launch := func() *daemon {
				d := s.begin(t, "", "ibweave-"+tc.engine, unbalanced, "qos TRUE")
				ups++
				d.wait("-> SUBNET UP\n", ups)
				return d
			}
			sweep := func(d *daemon) {
				d.sweep()
				ups++
				d.wait("-> SUBNET UP\n", ups)
			}
			stop := func(d *daemon) {
				d.signal(syscall.SIGKILL) // libumad2sim may hang in exit()
				<-d.ended
			}
			written := func(d *daemon) int { return strings.Count(d.log(), "Writing FT block") }
			d := launch()
			c := s.dial(t)
			for round := range short.Of(4, 2) {
				want := s.have(t, c)
				stop(d)
				before := written(d)
				d = launch()
				if n := written(d) - before; n != 0 {
					t.Errorf("round %d: %d blocks are written for the same fabric; %s", round, n, s.ownLog(t))
				}
				entries, _ := differ(s.f, want, s.have(t, c))
				if len(entries) > 0 {
					t.Errorf("round %d: %d entries of the same fabric are others", round, len(entries))
				}
				p := cables[rnd.IntN(len(cables))]
				short.Check(t, s.Console(t.Context(), "Unlink "+port(p), nil))
				sweep(d)
				kept := s.have(t, c)
				short.Check(t, s.Console(t.Context(), "Link "+port(p)+" "+port(s.f.Peer(p)), nil))
				stop(d)
				d = launch()
				entries, _ = differ(s.f, kept, s.have(t, c))
				if len(entries) > s.f.NumSwitches()*int(s.f.MaxLID())/10 {
					t.Errorf("round %d: %d entries are others after a cable was mended while OpenSM was down", round, len(entries))
				}
				sweep(d)
			}
			for line := range strings.Lines(d.log()) {
				if strings.Contains(line, "ibweave: ERR") && !strings.Contains(line, "ibweave: ERR IBW2: ibweave-xy: xy cannot route this fabric") {
					t.Errorf("the plugin says %q", line)
				}
			}
		})
	}
}

// TestUnreadSwitch has a switch lose what OpenSM asks it for its table: the others keep theirs, both logs name it, and it
// gets its entries once it answers.
func TestUnreadSwitch(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	s := start(t, f, err)
	twin, err := ibsim.NewTwin(s.f)
	if err != nil {
		t.Fatal(err)
	}
	d := s.stay(t, "ibweave-updn", unbalanced)
	c := s.dial(t)
	want := s.have(t, c)
	d.signal(syscall.SIGKILL)
	<-d.ended
	const deaf = fabric.NodeID(3)
	lose := func(percent int) {
		t.Helper()
		if err := s.Console(t.Context(), fmt.Sprintf("Error %q %d %d", twin.NodeID(deaf), percent, mad.AttrLinearForwardingTable), nil); err != nil {
			t.Fatal(err)
		}
	}
	lose(100)
	d = s.begin(t, "", "ibweave-updn", unbalanced)
	d.wait("ibweave: the tables were not read, and all blocks are written, of switch "+s.f.Node(deaf).GUID.String(), 1)
	d.wait("kept the tables that the switches had", 1)
	d.wait("ERRORS DURING INITIALIZATION", 1)
	lose(0)
	d.sweep()
	d.wait("-> SUBNET UP\n", 2)
	entries, _ := differ(s.f, want, s.have(t, c))
	for _, e := range entries {
		if e.s != deaf {
			t.Errorf("switch %d has another entry for LID %d", e.s, e.lid)
		}
	}
	if n := strings.Count(d.log(), "Writing FT block"); n == 0 {
		t.Error("OpenSM writes nothing")
	}
}

// TestWrongPorts gives a switch entries by ports that it does not have: OpenSM, which reads them for
// the plugin, replaces them, by our engine or its own where ours refuses the fabric.
func TestWrongPorts(t *testing.T) {
	for _, engine := range []string{"ibweave-updn", "ibweave-xy,updn"} {
		t.Run(engine, func(t *testing.T) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
			s := start(t, f, err)
			d := s.stay(t, "ibweave-updn", unbalanced)
			c := s.dial(t)
			found := short.Must(c.Discover(t.Context()))(t)
			d.signal(syscall.SIGKILL)
			<-d.ended
			data := mad.Data(slices.Repeat([]byte{200}, len(mad.Data{})))
			for sw := range fabric.NodeID(2) {
				to := subnet.Target{Route: found.Routes[sw]}
				short.Must(c.SMP(t.Context(), to, mad.Set, mad.AttrLinearForwardingTable, 0, &data))(t)
			}
			d = s.begin(t, "", engine, unbalanced)
			d.wait("-> SUBNET UP\n", 2)
			got := s.have(t, c)
			forest := lft.NewForest(s.f)
			for lid, p := range s.f.LIDPorts() {
				if p == fabric.NoPort || s.f.IsSwitch(s.f.Owner(p)) { // OpenSM's updn joins no spines
					continue
				}
				if forest.FindTree(got.LFT, fabric.LID(lid)); len(forest.Order) != s.f.NumSwitches() {
					t.Errorf("%d of %d switches deliver LID %d", len(forest.Order), s.f.NumSwitches(), lid)
				}
			}
		})
	}
}
