package cause

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// routed is a fabric with aggregation nodes, and its tables.
func routed(t *testing.T, f *fabric.Fabric, err error) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	if err == nil {
		f, err = gen.Options{AggregationNodes: true}.Apply(f)
	}
	short.Check(t, err)
	r := fabrictest.Compile(t, f, "minhop", compile.Options{})
	return r.Routing.Fabric, r.Routing.Tables.Clone()
}

// grouped checks tables and groups what is found.
func grouped(t *testing.T, f *fabric.Fabric, tables *lft.Tables, limit int) *verify.Result {
	t.Helper()
	s := &state.State{Fabric: f, Tables: tables, Manager: fabric.NoPort}
	r := short.Must(verify.Check(context.Background(), s, verify.Options{Findings: limit}))(t)
	short.Check(t, Group(context.Background(), r, s))
	return r
}

// Where packets are lost, all of them are counted once: the pairs of all causes are those that the
// checker counts, by kind too, and each finding has a cause.
func TestPairs(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 46))
		made, err := gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 15, Seed: seed})
		f, tables := routed(t, made, err)
		if seed%2 == 0 {
			if f, err = gen.DropLinks(f, 1, seed); err != nil {
				t.Fatal(err)
			}
		}
		for range rng.IntN(30) {
			row := tables.Row(fabric.NodeID(rng.IntN(f.NumSwitches())))
			row[1+rng.IntN(int(f.MaxLID()))] = []fabric.PortNum{fabric.NoPath, 0, fabric.PortNum(rng.IntN(12)), 99}[rng.IntN(4)]
		}
		r := grouped(t, f, tables, []int{2, 1000, 50}[seed%3])
		var lost verify.Pairs
		seen := make([]int, len(r.Findings))
		for _, c := range r.Causes {
			if c.Pairs[verify.LostHosts]+c.Pairs[verify.LostAggregation] > 0 && c.Severity != verify.Error {
				t.Errorf("seed %d: %s: %s", seed, c.Severity, c.Text)
			}
			for k, n := range c.Pairs {
				lost[k] += n
			}
			for _, k := range c.Findings {
				seen[k]++
			}
		}
		hosts := lost[verify.LostHosts] + lost[verify.LostAggregation]
		if want := r.Unicast.Unreachable + r.Unicast.Loops; hosts != want {
			t.Errorf("seed %d: causes lose %d pairs of CA ports, the checker counts %d", seed, hosts, want)
		}
		if got, want := lost[verify.LostManagement], r.Management.Unreachable+r.Management.Loops; got != want {
			t.Errorf("seed %d: causes lose %d pairs with switches, the checker counts %d", seed, got, want)
		}
		if want := slowlyLost(f, tables, fabric.AggregationKind); lost[verify.LostAggregation] != want {
			t.Errorf("seed %d: causes lose %d pairs of aggregation nodes, want %d", seed, lost[verify.LostAggregation], want)
		}
		for k, n := range seen {
			if n == 0 && !r.Findings[k].IsRest() {
				t.Errorf("seed %d: no cause of %s", seed, r.Findings[k].Message)
			}
		}
	}
}

// slowlyLost follows each pair by itself, and counts those that are lost of which one end at least is of a kind.
func slowlyLost(f *fabric.Fabric, t *lft.Tables, kind fabric.Kind) (n int64) {
	for _, a := range f.CAPorts() {
		for _, b := range f.CAPorts() {
			if a == b || f.Kind(f.Owner(a)) != kind && f.Kind(f.Owner(b)) != kind {
				continue
			}
			if _, err := t.Path(f, a, f.LID(b), nil); err != nil {
				n++
			}
		}
	}
	return n
}

// A cable that is gone under tables that use it is one cause, which names both ends, whatever the fabric has more.
func TestDeadCable(t *testing.T) {
	two, three := fabrictest.FatTree(t, 8, 2), fabrictest.FatTree(t, 6, 3)
	for _, made := range []*fabric.Fabric{two, three} {
		f, tables := routed(t, made, nil)
		between := slices.DeleteFunc(f.Cables(), func(c fabric.Cable) bool { return !f.IsSwitch(f.Owner(c.A)) || !f.IsSwitch(f.Owner(c.B)) })
		for i := 0; i < len(between); i += 5 {
			gone := []fabric.Cable{between[i]} // one to three
			for k := range i % 3 {
				gone = append(gone, between[(i+(k+1)*len(between)/3)%len(between)])
			}
			var ports []fabric.PortID
			for _, c := range gone {
				ports = append(ports, c.A)
			}
			r := grouped(t, f.Without(ports...), tables, 0)
			for _, c := range gone {
				if !slices.ContainsFunc(r.Causes[:min(len(r.Causes), len(gone))], func(x verify.Cause) bool {
					return strings.Contains(x.Text, f.PortName(c.A)) && strings.Contains(x.Text, f.PortName(c.B)) && x.Severity == verify.Error
				}) {
					t.Errorf("%s to %s: %q", f.PortName(c.A), f.PortName(c.B), r.Causes[0].Text)
				}
			}
			for _, x := range r.Causes[len(gone):] {
				if x.Pairs != (verify.Pairs{}) {
					t.Errorf("%s to %s: %q too", f.PortName(gone[0].A), f.PortName(gone[0].B), x.Text)
				}
			}
		}
	}
}

// Tables that are those of one engine at some switches, two or more, and of another at the others are told;
// those of one engine are not, and none whose switches choose each for itself.
func TestFindMixture(t *testing.T) {
	made, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 2})
	f, old := routed(t, made, err)
	for _, name := range []string{"updn", "fattree", "spam", "minhop", "layered"} {
		r := fabrictest.Compile(t, f, name, compile.Options{})
		if few, most := findMixture(f, r.Routing.Tables); few != nil {
			t.Errorf("%s: %v %v", name, few, most)
		}
	}
	other, alone := old.Clone(), old.Clone() // other leads by the next spine, alone by any
	rng := rand.New(rand.NewPCG(46, 1))
	var leaves []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(s)) == 0 {
			continue
		}
		leaves = append(leaves, s)
		up, _ := f.SwitchLinks(s)
		for lid, e := range old.Row(s) {
			if i := slices.IndexFunc(up, func(p fabric.PortID) bool { return f.Num(p) == e }); i >= 0 {
				other.Row(s)[lid] = f.Num(up[(i+1)%len(up)])
				alone.Row(s)[lid] = f.Num(up[rng.IntN(len(up))])
			}
		}
	}
	if few, most := findMixture(f, alone); few != nil {
		t.Errorf("%v %v", few, most)
	}
	for n := range len(leaves) + 1 {
		mixed := old.Clone()
		var written []fabric.NodeID
		for i, k := range rng.Perm(len(leaves)) {
			if i < n {
				written = append(written, leaves[k])
				copy(mixed.Row(leaves[k]), other.Row(leaves[k]))
			}
		}
		slices.Sort(written)
		few, most := findMixture(f, mixed)
		if n < 2 || n > len(leaves)-2 {
			if few != nil {
				t.Errorf("%d: %v %v", n, few, most)
			}
		} else if !slices.Equal(few, written) && !slices.Equal(most, written) || len(few) > len(most) || len(few)+len(most) != len(leaves) {
			t.Errorf("%v: %v %v", written, few, most)
		}
	}
}

// Of many switches that lack the same entries the findings name the first as their cause, and the result has all of them;
// a cause has one list, the shorter of LIDs and of switches.
func TestSwitchesOfCauses(t *testing.T) {
	made, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 2})
	f, tables := routed(t, made, err)
	hosts := f.CAPorts()
	for _, n := range []int{1, 4, 100} { // LIDs
		lacking := tables.Clone()
		const lack = shownSwitches + 3
		for s := range fabric.NodeID(lack) {
			for _, p := range hosts[len(hosts)-n:] {
				lacking.Row(s)[f.LID(p)] = fabric.NoPath
			}
		}
		r := grouped(t, f, lacking, 0)
		c := r.Causes[0]
		if all := r.CauseSwitches[c.Text]; len(all) != lack || len(r.CauseSwitches) != 1 || r.Findings[c.Findings[0]].Cause != c.Text {
			t.Errorf("%d LIDs: %d switches of %q", n, len(all), c.Text)
		}
		text := strings.Join(c.Follows, "\n")
		if lids, from := strings.Contains(text, "cannot be reached: "), strings.Contains(text, "from "); lids != (n == 4) || from != (n == 100) {
			t.Errorf("%d LIDs: %q", n, c.Follows)
		}
	}
}
