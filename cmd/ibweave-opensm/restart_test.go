package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

var (
	topologies = flag.String("fabrics", "", "patterns of topology files for TestRestart, with commas, in place of its own fabrics")
	engines    = flag.String("engines", "updn", "engines for -fabrics, with commas")
)

// TestRestart kills OpenSM and starts it again, which leaves the tables of the switches as they are: not one block is written
// for the same fabric, as its log and the tables tell. For one that has changed meanwhile few are; with -fabrics they are
// compared with those of an OpenSM that goes on.
func TestRestart(t *testing.T) {
	if *topologies != "" {
		for pattern := range strings.SplitSeq(*topologies, ",") {
			files := short.Must(filepath.Glob(pattern))(t)
			if len(files) == 0 {
				t.Errorf("there is no file %s", pattern)
			}
			for _, file := range files {
				for engine := range strings.SplitSeq(*engines, ",") {
					t.Run(filepath.Base(file)+" by "+engine, func(t *testing.T) { compareRestarts(t, file, engine) })
				}
			}
		}
		return
	}
	cases := []struct {
		name, engine string
		make         func() (*fabric.Fabric, error)
	}{
		{"auto", "auto", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}) }},
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
		{"tree", "updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
		{"fattree", "fattree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}) }},
		{"two of ours", "xy,ibweave-updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
	}
	for _, tc := range short.Usual(cases, cases[:4]) {
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
			for round := range 4 {
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

// compareRestarts simulates a fabric twice. One has an OpenSM that goes on, the other one has OpenSM killed and started again,
// or taken over from on another switch, before and while 1, 4 and 16 cables between switches go or come. Before each change both have
// the tables of the OpenSM that goes on; the other one writes no block then, and after each change at most a tenth more entries
// are others.
func compareRestarts(t *testing.T, file, engine string) {
	f, _, err := topology.Parse(file, short.Must(os.ReadFile(file))(t), topology.Options{Lenient: true})
	tc := chaosCase{engine: "ibweave-" + engine, config: keepsAlone}
	if engine == "layered" {
		tc.options = []string{"qos TRUE"}
	}
	begun, asked, reading := time.Now(), time.Time{}, time.Duration(0)
	blocks, said := 0, ""
	begin := func() *chaos {
		c := tc.on(t, startAlone(t, f, err))
		// Debug messages of this source file alone name the blocks that are written; those of all are more than 1 GB.
		c.named = map[string][]byte{"per_module_logging_file": []byte("osm_ucast_mgr.c 0x0f\n")}
		return c
	}
	other, c := begin(), begin()
	c.see = func(message string) { // c.mu is held
		switch {
		case strings.Contains(message, "Writing FT block"):
			blocks++
		case strings.Contains(message, "building routing with"):
			asked = time.Now()
		case strings.HasPrefix(message, "ibweave: "+tc.engine) && !asked.IsZero():
			asked, reading = time.Time{}, time.Since(asked)
		}
	}
	other.see = func(message string) {
		if _, text, ok := strings.Cut(message, "ibweave: "+tc.engine+": "); ok && strings.Contains(text, " changed") {
			said = text
		}
	}
	for _, c := range []*chaos{other, c} {
		defer func() { _ = c.o.Stop() }()
		begun = time.Now()
		c.startOpenSM()
		c.dial()
	}
	now := other.have(t, other.client)
	t.Logf("%d switches, %d ports of CAs, LIDs to %d: up after %v, %d blocks are written", c.f.NumSwitches(), len(c.f.CAPorts()), c.f.MaxLID(), time.Since(begun), blocks)
	if blocks == 0 {
		t.Fatal("OpenSM's log has no blocks that it writes")
	}
	rnd := rand.New(rand.NewPCG(*seed, 2))
	for _, how := range []struct {
		name string
		next func(func())
	}{{"restart", c.replace}, {"takeover", c.takeOver}} {
		for _, n := range []int{1, 4, 16} {
			begun, blocks = time.Now(), 0
			how.next(func() { c.write(now) })
			up := time.Since(begun)
			if entries, _ := differ(c.f, now, c.have(t, c.client)); blocks+len(entries) > 0 {
				t.Errorf("%s: %d blocks are written for the same fabric, and %d entries are others; %s", how.name, blocks, len(entries), c.ownLog(t))
			}
			t.Logf("%s, same fabric: %d blocks; up after %v, of which %v from being asked for tables to the plugin's line", how.name, blocks, up, reading)
			toggled := c.choose(rnd, n)
			toggle := func(c *chaos) {
				for _, p := range toggled {
					if c.down[p] {
						c.mend(p)
					} else {
						c.cut(p, "Unlink")
					}
				}
			}
			begun, blocks = time.Now(), 0
			how.next(func() { toggle(c) })
			up = time.Since(begun)
			toggle(other)
			other.sweep()
			other.mu.Lock()
			line := said
			other.mu.Unlock()
			then := other.have(t, other.client)
			got := c.have(t, c.client)
			a, written := differ(c.f, now, got)
			b, would := differ(c.f, now, then)
			g := c.f.Without(slices.Sorted(maps.Keys(c.down))...)
			t.Logf("%s, %d cables go or come, %d are down: %d entries are others, %d blocks, %d of them differ; %d entries and %d blocks by OpenSM that goes on; loads to %d and %d; up after %v, %v; %s",
				how.name, n, len(c.down), len(a), blocks, written, len(b), would, lft.GreatestLoad(g, got.LFT), lft.GreatestLoad(g, then.LFT), up, reading, line)
			short.Equal(t, blocks, written, how.name, "blocks are written, and are others")
			if float64(len(a)) > 1.1*float64(len(b)) {
				t.Errorf("%s, %d cables go or come: %d entries are others, and %d by OpenSM that goes on", how.name, n, len(a), len(b))
			}
			now = then
		}
	}
	for _, line := range slices.Concat(c.failed, other.failed) {
		t.Errorf("the plugin says %q", line)
	}
}

// write gives the switches tables.
func (c *chaos) write(tables *subnet.Tables) {
	c.t.Helper()
	found := short.Must(c.client.Discover(c.t.Context()))(c.t)
	for sw, route := range found.Routes[:c.f.NumSwitches()] {
		row := tables.LFT.Row(fabric.NodeID(sw))
		for block := range int(c.f.MaxLID())/lft.BlockSize + 1 {
			data := mad.Data(slices.Repeat([]byte{byte(fabric.NoPath)}, lft.BlockSize))
			for i, p := range row[block*lft.BlockSize : min(len(row), (block+1)*lft.BlockSize)] {
				data[i] = byte(p)
			}
			short.Must(c.client.SMP(c.t.Context(), subnet.Target{Route: route}, mad.Set, mad.AttrLinearForwardingTable, uint32(block), &data))(c.t)
		}
	}
}

// choose picks cables between switches to toggle: of each two one that is down where there is one, else one without which all
// are connected still.
func (c *chaos) choose(rnd *rand.Rand, n int) (list []fabric.PortID) {
	c.t.Helper()
	down := maps.Clone(c.down)
	back := slices.Sorted(maps.Keys(down))
	for tries := 0; len(list) < n && tries < 1000; tries++ {
		p := one(rnd, c.cables)
		if len(back) > 0 && rnd.IntN(2) == 0 {
			p = one(rnd, back)
		}
		if !c.f.IsSwitch(c.f.Owner(p)) || !c.f.IsSwitch(c.f.Owner(c.f.Peer(p))) || slices.Contains(list, p) {
			continue
		}
		if down[p] {
			delete(down, p)
		} else if down[p] = true; len(c.f.Without(slices.Sorted(maps.Keys(down))...).Components().List) > 1 {
			delete(down, p)
			continue
		}
		list = append(list, p)
	}
	return list
}

// TestUnreadSwitch has a switch lose what OpenSM asks it for its table: the others keep theirs, both logs name it, and it
// gets its entries once it answers. Another one was just started: it has no table to be read, and gets one at once.
func TestUnreadSwitch(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	s := start(t, f, err)
	twin := short.Must(ibsim.NewTwin(s.f))(t)
	d := s.stay(t, "ibweave-updn", unbalanced)
	c := s.dial(t)
	want := s.have(t, c)
	d.signal(syscall.SIGKILL)
	<-d.ended
	const deaf, started = fabric.NodeID(3), fabric.NodeID(4)
	found := short.Must(c.Discover(t.Context()))(t)
	to := subnet.Target{Route: found.Routes[started]}
	info := short.Must(c.SMP(t.Context(), to, mad.Get, mad.AttrSwitchInfo, 0, nil))(t)
	clear(info[6:8]) // LinearFDBTop
	short.Must(c.SMP(t.Context(), to, mad.Set, mad.AttrSwitchInfo, 0, &info))(t)
	none := mad.Data(slices.Repeat([]byte{byte(fabric.NoPath)}, len(mad.Data{})))
	short.Must(c.SMP(t.Context(), to, mad.Set, mad.AttrLinearForwardingTable, 0, &none))(t)
	lose := func(percent int) {
		t.Helper()
		short.Check(t, s.Console(t.Context(), fmt.Sprintf("Error %q %d %d", twin.NodeID(deaf), percent, mad.AttrLinearForwardingTable), nil))
	}
	lose(100)
	d = s.begin(t, "", "ibweave-updn", unbalanced)
	d.wait("ibweave: the tables were not read, and all blocks are written, of switch "+s.f.Node(deaf).GUID.String(), 1)
	d.wait("kept the tables that the switches had", 1)
	_, line, _ := strings.Cut(d.log(), "the tables were not read")
	line, _, _ = strings.Cut(line, "\n")
	short.Equal(t, strings.Contains(line, s.f.Node(started).GUID.String()), false, line)
	d.wait("ERRORS DURING INITIALIZATION", 1)
	lose(0)
	d.sweep()
	d.wait("-> SUBNET UP\n", 2)
	got := s.have(t, c)
	entries, _ := differ(s.f, want, got)
	for _, e := range entries {
		if e.s != deaf && e.s != started {
			t.Error("another entry", e)
		}
	}
	for lid, p := range s.f.LIDPorts() {
		if p != fabric.NoPort && got.LFT.Row(started)[lid] == fabric.NoPath {
			t.Errorf("the switch that was started has none for LID %d", lid)
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
