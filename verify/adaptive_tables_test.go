package verify_test

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
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// TestTableRules breaks each rule of tables in one place and pins what is said.
func TestAdaptiveTableRules(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{6}, Hosts: 2, Spines: 3}) // ports 3 to 5 of leaves are free
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{})
	}
	short.Check(t, err)
	leaf, _ := f.SwitchByGUID(0x200000)
	base := func() (*adaptive.Tables, *adaptive.Group) {
		x := shortestTables(f, 1, rand.New(rand.NewPCG(1, 5)))
		for s := range fabric.NodeID(f.NumSwitches()) { // without what is left to chance
			for l := range x.PLFTs[0].Ports.Row(s) {
				_, group := x.PLFTs[0].At(s, fabric.LID(l))
				if group < 0 {
					continue
				}
				ports := x.Groups[s][group].Ports()
				x.Groups[s][group].Subgroups = []adaptive.Subgroup{{Ports: ports}}
				if x.PLFTs[0].Set(s, fabric.LID(l), adaptive.Free, group); ports.Len() == 1 {
					x.PLFTs[0].Set(s, fabric.LID(l), adaptive.Static, -1)
				}
				ports.Each(func(p fabric.PortNum) { x.PLFTs[0].Ports.Row(s)[l] = p })
			}
		}
		return x, &x.Groups[leaf][0]
	}
	for _, c := range []struct {
		rule    string
		breakIt func(x *adaptive.Tables, g *adaptive.Group)
		want    string
	}{
		{verify.AdaptivePortDown, func(_ *adaptive.Tables, g *adaptive.Group) { g.Subgroups[0].Ports.Add(3); g.Subgroups[0].Ports.Add(4) },
			`warning 2 switch "leaf 0" (0x0000000000200000) has groups with 2 ports without a cable, 3 the first`},
		{verify.AdaptiveEmptyGroup, func(_ *adaptive.Tables, g *adaptive.Group) { g.Subgroups[0].Ports = adaptive.PortSet{} },
			`warning 1 switch "leaf 0" (0x0000000000200000) uses 1 group without a port, 1 the first`},
		{verify.AdaptiveStaticOutside, func(x *adaptive.Tables, _ *adaptive.Group) { x.PLFTs[0].Ports.Row(leaf)[f.LID(f.CAPorts()[4])] = 1 },
			`warning 1 switch "leaf 0" (0x0000000000200000) has 1 entry with a static port outside of its group, LID %d and group 1 the first`},
		{verify.AdaptiveGroupOfOne, func(_ *adaptive.Tables, g *adaptive.Group) {
			g.Subgroups[0].Ports = adaptive.PortSet{}
			g.Subgroups[0].Ports.Add(3)
		},
			`note 1 switch "leaf 0" (0x0000000000200000) uses 1 group of one port, 1 the first`},
		{verify.AdaptiveManyGroups, func(x *adaptive.Tables, g *adaptive.Group) {
			p := adaptive.NewPLFT(lft.NewTables(f.NumSwitches(), 3000))
			x.Groups[leaf] = slices.Repeat([]adaptive.Group{*g}, adaptive.DefaultGroups+1)
			for i := range x.Groups[leaf] {
				p.Set(leaf, fabric.LID(1000+i), adaptive.Free, i)
			}
			x.PLFTs = append(x.PLFTs, p)
		},
			`warning 1793 switch "leaf 0" (0x0000000000200000) uses 1793 groups, more than the 1792 of a group table by default`},
		{verify.AdaptiveUnevenGroups, func(x *adaptive.Tables, _ *adaptive.Group) {
			x.PLFTs[0].Set(leaf, f.LID(f.CAPorts()[4]), adaptive.Static, -1)
		},
			`warning 1 switch "leaf 0" (0x0000000000200000) has fewer choices for 1 LID than a switch with the same cables: 1 for LID %d, and switch "leaf 1" (0x0000000000200001) has 3`},
		{verify.AdaptiveUnselectedPLFT, func(x *adaptive.Tables, _ *adaptive.Group) { x.PLFTs, x.Select = append(x.PLFTs, x.PLFTs[0]), nil },
			`warning 2 there are 2 PLFTs, and it is not known which packets take which: want --plft FILE`},
		{verify.AdaptiveUnselectedPLFT, func(x *adaptive.Tables, _ *adaptive.Group) {
			p := adaptive.NewPLFT(lft.NewTables(f.NumSwitches(), f.MaxLID()))
			p.Ports.Row(leaf)[1] = 1
			x.PLFTs = append(x.PLFTs, p)
			x.Select.Row(leaf, 5)[3] = 1 // without a cable
		}, `warning 1 switch "leaf 0" (0x0000000000200000) has a PLFT 1 that no input port with a cable selects`},
	} {
		x, g := base()
		before := say(verify.CheckAdaptiveTables(f, x, 0), c.rule)
		c.breakIt(x, g)
		got := say(verify.CheckAdaptiveTables(f, x, 0), c.rule)
		want := c.want
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, f.LID(f.CAPorts()[4]))
		}
		if before != "" || got != want+"\n" {
			t.Errorf("%s: before\n%sthen\n%swant\n%s", c.rule, before, got, want)
		}
	}
	x, _ := base()
	y, _ := base()
	y.PLFTs[0].Ports.Row(leaf)[3]++
	short.Diff(t, say(verify.CompareStatic(f, x, x.PLFTs[0].Ports, 0), verify.AdaptiveStaticDiffers), "")
	if got := say(verify.CompareStatic(f, x, y.PLFTs[0].Ports, 0), verify.AdaptiveStaticDiffers); strings.Count(got, "\n") != 1 || !strings.Contains(got, "for 1 LID: port ") {
		t.Error(got)
	}
}

// say is the findings of a rule as text.
func say(list []verify.Finding, rule string) string {
	var b strings.Builder
	for _, f := range list {
		if f.Rule == rule {
			fmt.Fprintln(&b, f.Severity, f.Count, f.Message)
		}
	}
	return b.String()
}

// reportCPU reports the CPU time of each operation, which other programs disturb less than time.
func reportCPU(b *testing.B) func() {
	cpu := func() float64 {
		var u syscall.Rusage
		short.Check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	start := cpu()
	return func() { b.ReportMetric((cpu()-start)/1e6/float64(b.N), "cpu-ms/op") }
}

// BenchmarkCheck puts the checker of all choices beside that of static tables.
func BenchmarkAdaptiveCheck(b *testing.B) {
	for _, radix := range []int{24, 36, 56} {
		b.Run(fmt.Sprintf("radix=%d", radix), func(b *testing.B) {
			f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3}))(b)
			f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(b)
			routing := short.Must(updown.Engine{}.Route(b.Context(), f, lft.Options{}))(b)
			tables := short.Must(adaptive.Widen(b.Context(), routing))(b)
			b.Run("static", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := verify.Check(b.Context(), &state.State{Fabric: f, Tables: routing.Tables}, verify.Options{}); err != nil || r.Verdict != verify.VerdictClean {
						b.Fatal(err)
					}
				}
			})
			b.Run("adaptive", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := verify.CheckAdaptive(b.Context(), withTables(f, tables, state.State{}), verify.Options{}); err != nil || len(r.Findings) > 0 || r.Certificate() == nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
