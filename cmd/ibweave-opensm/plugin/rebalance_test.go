package plugin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// TestRebalanced: after a failure the small repair is installed at once, and the next sweeps of the
// same subnet come to balanced tables by small steps, once the subnet was up.
func TestRebalanced(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{20}, Hosts: 16, Spines: 8, Parallel: 2})
	f = withLIDs(t, f, err)
	o := open(t, "rebalance: 1.05\n")
	route := func(s *Snapshot) *Tables {
		t.Helper()
		got := short.Must(o.Route(o.engine("updn"), s))(t)
		o.Written(got)
		return got
	}
	route(snapshotOf(f, rand.New(rand.NewPCG(1, 2))))
	cables, _ := f.SwitchLinks(3)
	g := f.Without(cables[0], cables[5])
	take := func() *Snapshot { return snapshotOf(g, rand.New(rand.NewPCG(1, 2))) }
	first := route(take())
	if !first.Step.Kept || first.Rebalanced {
		t.Fatalf("%+v", first.Step)
	}
	if again := route(take()); again.Routing != first.Routing {
		t.Error("rebalanced before the subnet was up")
	}
	o.SubnetUp()
	o.last.Wait()
	last, steps := first, 0
	for ; steps < 20; steps++ {
		next := route(take())
		if !next.Rebalanced || next.Routing == last.Routing {
			break
		}
		if n := next.Step.Changes.Blocks; n == 0 || n > 64 || next.generation == last.generation {
			t.Errorf("step %d: %d blocks", steps, n)
		}
		last = next
	}
	scratch := short.Must(o.engines[o.engine("updn")].Route(t.Context(), g, lft.Options{}))(t)
	was, is, want := lft.GreatestLoad(g, first.Routing.Tables), lft.GreatestLoad(g, last.Routing.Tables), lft.GreatestLoad(g, scratch.Tables)
	if steps == 0 || is >= was || float64(is) > 1.05*float64(want) {
		t.Errorf("%d steps: load %d, at first %d, from scratch %d", steps, is, was, want)
	}
	if log := o.ownLog(t); strings.Count(log, `"rebalanced": true`) != steps {
		t.Errorf("%d steps: %s", steps, log)
	}
	if line := o.lines[len(o.lines)-1]; !strings.Contains(line, " routes on a link") {
		t.Errorf("OpenSM's log has %q", line)
	}
}

// TestTrafficAbsent: without jobs at the start there are none that stay.
func TestTrafficAbsent(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	o := open(t, "traffic: "+filepath.Join(t.TempDir(), "absent.yaml")+"\n")
	short.Must(o.Route(o.engine("updn"), snapshotOf(f, rand.New(rand.NewPCG(1, 2)))))(t)
	if i := slices.IndexFunc(o.lines, func(l string) bool { return strings.Contains(l, "absent.yaml") }); i < 0 ||
		!strings.HasSuffix(o.lines[i], "; there were no jobs before, and tables are not made for any") {
		t.Errorf("OpenSM's log has %q", o.lines)
	}
}

// TestTraffic: a new file of jobs is followed at the next sweeps of the same subnet, by small steps that end, and a
// broken one, or one with hosts that are not there, changes nothing.
func TestTraffic(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{10}, Hosts: 16, Spines: 8, Parallel: 2})
	f = withLIDs(t, f, err)
	name := filepath.Join(t.TempDir(), "traffic.yaml")
	write := func(hosts string, by int) {
		t.Helper()
		text := fmt.Sprintf("jobs: [{name: a, hosts: [%s], patterns: [{pattern: \"shift:%d\", size: 1G}]}]\n", hosts, by)
		short.Check(t, os.WriteFile(name, []byte(text), 0o600))
	}
	var hosts []string
	for _, p := range f.CAPorts() {
		hosts = append(hosts, f.Node(f.Owner(p)).GUID.String())
	}
	random := rand.New(rand.NewPCG(3, 3))
	random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	all := strings.Join(hosts, ", ")
	write(all, 1)
	o := open(t, "traffic: "+name+"\nuniform-floor: 1.3\n")
	seconds := func(r *lft.Routing) float64 {
		t.Helper()
		x := short.Must(jobs.Read(name, os.ReadFile))(t)
		in := short.Must(x.In(f, nil))(t)
		d := short.Must(in.Demand(t.Context()))(t)
		times := short.Must(bound.TimesUnder(t.Context(), f, r.Tables, d))(t)
		return times.Switches
	}
	sweep := func() *Tables {
		t.Helper()
		got := short.Must(o.Route(o.engine("updn"), snapshotOf(f, rand.New(rand.NewPCG(1, 2)))))(t)
		o.Written(got)
		return got
	}
	plain := short.Must(o.engines[o.engine("updn")].Route(t.Context(), f, lft.Options{}))(t)
	first := sweep()
	if seconds(first.Routing) >= seconds(plain) {
		t.Errorf("%v seconds, %v without traffic", seconds(first.Routing), seconds(plain))
	}
	o.SubnetUp()
	o.last.Wait()
	write(all, 7)
	last, steps, was := first, 0, seconds(first.Routing)
	for ; steps < 40; steps++ {
		next := sweep()
		if !next.Rebalanced {
			break
		}
		if n := next.Step.Changes.Blocks; n == 0 || n > 64 {
			t.Errorf("step %d: %d blocks", steps, n)
		}
		last = next
	}
	if is := seconds(last.Routing); steps == 0 || steps == 40 || is >= was {
		t.Errorf("%d steps: %v seconds, %v before", steps, is, was)
	}
	if most, is := 1.3*float64(lft.GreatestLoad(f, plain.Tables)), lft.GreatestLoad(f, last.Routing.Tables); float64(is) > most {
		t.Errorf("load %d of all to all, at most %v", is, most)
	}
	for _, broken := range []string{"absent", "]"} {
		write(broken, 1)
		if next := sweep(); next.Rebalanced || next.Routing != last.Routing {
			t.Errorf("%q changes tables", broken)
		}
		sweep()
		if n := strings.Count(strings.Join(o.lines, "\n"), "ERR IBW1"); broken == "absent" && n != 1 {
			t.Errorf("%d lines of errors, want one: %q", n, o.lines)
		}
	}
}

// TestRebalanceStuck fails and repairs cables of a fabric on which small steps often do not come to balanced tables, since the
// order of the switches or what cannot be proven keeps them from it: the sweep that finds no further step routes from
// scratch, once, and says why.
func TestRebalanceStuck(t *testing.T) {
	f, err := gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 5, Hosts: 64, Seed: 7})
	f = withLIDs(t, f, err)
	for _, engine := range []string{"updn", "minhop"} {
		o := open(t, "")
		rnd := rand.New(rand.NewPCG(1, 5))
		again := 0
		for round := range short.Of(12, 4) {
			var cut []fabric.PortID
			for range round % 5 {
				out, _ := f.SwitchLinks(fabric.NodeID(rnd.IntN(f.NumSwitches())))
				cut = append(cut, out[rnd.IntN(len(out))])
			}
			g := f.Without(cut...)
			if len(g.Components().List) > 1 {
				continue
			}
			var last *Tables
			scratch := 0
			for steps := 0; ; steps++ {
				if steps == 40 {
					t.Fatalf("%s, round %d: no end of steps", engine, round)
				}
				next := short.Must(o.Route(o.engine(engine), snapshotOf(g, rand.New(rand.NewPCG(1, 2)))))(t)
				o.Written(next)
				o.SubnetUp()
				if o.last != nil {
					o.last.Wait()
				}
				if last != nil && next.Routing == last.Routing {
					break
				}
				if last = next; strings.Contains(o.lines[len(o.lines)-1], "routed from scratch, as no small step brings the loads near") {
					scratch++
				}
			}
			if again += scratch; scratch > 1 {
				t.Errorf("%s, round %d: routed from scratch %d times", engine, round, scratch)
			}
			want := short.Must(o.engines[o.engine(engine)].Route(t.Context(), g, lft.Options{}))(t)
			if is, least := lft.GreatestLoad(g, last.Routing.Tables), lft.GreatestLoad(g, want.Tables); float64(is) > lft.DefaultRebalance*float64(least) {
				t.Errorf("%s, round %d: load %d, from scratch %d", engine, round, is, least)
			}
			if !clean(last.Verify) {
				t.Errorf("%s, round %d: %+v", engine, round, last.Verify.Findings)
			}
		}
		if again == 0 {
			t.Errorf("%s: small steps always come to balanced tables", engine)
		}
	}
}
