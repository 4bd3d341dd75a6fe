package multipath_test

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

var trials = flag.Int("trials", 1000, "random tables that are compared with a slow checker")

// TestAnyTables compares Check with a checker that follows every choice.
func TestAnyTables(t *testing.T) {
	kinds := map[string]int{}
	for seed := range short.Of(*trials, 30) {
		r := rand.New(rand.NewPCG(uint64(seed), 20))
		f := randomFabric(t, r, 2+r.IntN(5), r.IntN(6), 1+r.IntN(6))
		tables, opt := randomTables(f, r), randomLanes(f, r)
		got, err := multipath.Check(t.Context(), f, tables, opt)
		if err != nil {
			t.Fatal(err)
		}
		s := newSlow(f, tables, opt)
		n := &got.Counts
		compare := func(name string, slow, fast int64) {
			if slow != fast {
				t.Errorf("seed %d: %s: %d, want %d", seed, name, fast, slow)
			}
		}
		compare("dead ends", s.deadEnds, n.DeadEnds)
		compare("loops", s.loops, n.Loops)
		compare("management dead ends", s.mgmtDeadEnds, n.ManagementDeadEnds)
		compare("management loops", s.mgmtLoops, n.ManagementLoops)
		compare("dependencies", int64(s.all.size()), int64(n.Dependencies))
		compare("management credit loops", int64(s.all.components()), int64(n.ManagementCreditLoops))
		compare("management without escape", int64(s.allEscape.components()), int64(n.ManagementNoEscape))
		compare("credit loops", int64(s.unicast.components()), int64(n.CreditLoops))
		compare("without escape", int64(s.unicastEscape.components()), int64(n.NoEscape))
		checkCertificate(t, s, got.Certificate(), r)
		for i := range got.Findings {
			checkWitness(t, s, &got.Findings[i])
		}
		if t.Failed() {
			t.FailNow()
		}
		var v verify.Result
		got.AddTo(&v)
		kinds[v.Verdict]++
		for _, f := range got.Findings {
			kinds[f.Rule]++
		}
	}
	t.Log(kinds)
}

// checkWitness expects that packets can go from each channel of a witness to the next one, in a
// cycle except to a dead end, and that switches can choose them.
func checkWitness(t *testing.T, s *slow, x *verify.Finding) {
	t.Helper()
	dead := x.Rule == multipath.DeadEnd || x.Rule == multipath.ManagementDeadEnd
	for i, h := range x.Witness {
		n, _ := s.f.SwitchByGUID(h.Switch)
		chosen := h.Port == fabric.NoPath && dead
		for k, plft := range s.t.PLFTs {
			if h.LID <= plft.Ports.MaxLID() {
				choices := s.t.Choices(k, n, h.LID)
				chosen = chosen || h.LID != 0 && choices.Has(h.Port)
			}
		}
		if !chosen {
			t.Errorf("%s: no PLFT chooses hop %d of %v", x.Rule, i, x.Witness)
			return
		}
		if dead && i == len(x.Witness)-1 {
			return
		}
		next := x.Witness[(i+1)%len(x.Witness)]
		if to := s.f.PeerSwitch(s.f.Port(n, h.Port)); to == fabric.NoNode || s.f.Node(to).GUID != next.Switch {
			t.Errorf("%s: hop %d of %v does not lead to the next", x.Rule, i, x.Witness)
		}
	}
}

// checkCertificate expects a certificate where there is no credit loop of CA ports, that it
// holds, and that it does not if a number no longer climbs along some dependency.
func checkCertificate(t *testing.T, s *slow, c *verify.Certificate, r *rand.Rand) {
	t.Helper()
	if (c != nil) != (s.unicast.components() == 0) {
		t.Errorf("certificate %v, and %d credit loops", c, s.unicast.components())
	}
	if c == nil {
		return
	}
	opt := verify.Options{SL2VL: s.opt.SL2VL, PathSLs: s.opt.PathSLs}
	if err := c.CheckAdaptive(s.f, s.t, opt); err != nil {
		t.Error(err)
		return
	}
	deps := s.unicast
	if c.Management {
		deps = s.all
	}
	type dependency struct{ from, to channel }
	var list []dependency
	for from, next := range deps {
		for to := range next {
			list = append(list, dependency{from, to})
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b dependency) int {
		return cmp.Or(cmp.Compare(a.from.port, b.from.port), cmp.Compare(a.from.vl, b.from.vl), cmp.Compare(a.to.port, b.to.port), cmp.Compare(a.to.vl, b.to.vl))
	})
	d := list[r.IntN(len(list))]
	at := func(x channel) int {
		return slices.IndexFunc(c.Channels, func(n verify.NumberedChannel) bool {
			return n.GUID == s.f.Node(s.f.Owner(x.port)).GUID && n.Port == s.f.Num(x.port) && n.VL == x.vl
		})
	}
	c.Channels[at(d.to)].Number = c.Channels[at(d.from)].Number
	if err := c.CheckAdaptive(s.f, s.t, opt); err == nil {
		t.Errorf("the certificate holds without climbing from %v to %v", d.from, d.to)
	}
}
