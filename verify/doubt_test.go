package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// What is not known can be anything: a rule that has no findings and is decided has none
// whatever SLs the unknown paths get, and what is found is there with all of them.
func TestUnknownPathSLs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	decided, undecided, found := 0, 0, 0
	for trial := range 200 {
		f, tables := sparseRing(t, r)
		if r.IntN(2) == 0 {
			f = randomFabric(t, r)
			tables = shortestTables(f, r)
		}
		s, sls := someLanes(f, r)
		if sls == nil || f.MaxLID() == 0 {
			continue
		}
		// Rows are shared with what is completed below.
		rate := 1 + r.IntN(20)
		blank := func(row []fabric.SL) []fabric.SL {
			row = slices.Clone(row)
			for lid := range row {
				if r.IntN(20) < rate {
					row[lid] = lft.UnknownSL
				}
			}
			return row
		}
		partly := lft.NewPathSLs(f.NumSwitches(), sls.MaxLID())
		for n := range fabric.NodeID(f.NumSwitches()) {
			partly.SetRow(blank(sls.Row(n)), n)
		}
		for _, port := range sls.Ports() {
			partly.SetPorts(blank(sls.PortRow(port)), port)
		}
		in := &state.State{Fabric: f, Tables: tables, SL2VL: s, PathSLs: partly}
		got := mustCheck(t, in, Options{Workers: 1})
		open := func(rule string) bool {
			return slices.ContainsFunc(got.Undecided, func(u Undecided) bool { return u.Rule == rule })
		}
		for range 4 {
			in.PathSLs = lft.NewPathSLs(f.NumSwitches(), sls.MaxLID())
			fill := func(row []fabric.SL) []fabric.SL {
				row = slices.Clone(row)
				any := fabric.SL(r.IntN(lft.NumSLs))
				for lid := range row {
					if row[lid] == lft.UnknownSL {
						if row[lid] = any; r.IntN(2) == 0 {
							row[lid] = fabric.SL(r.IntN(lft.NumSLs))
						}
					}
				}
				return row
			}
			for n := range fabric.NodeID(f.NumSwitches()) {
				in.PathSLs.SetRow(fill(partly.Given(n)), n)
			}
			for _, port := range partly.Ports() {
				in.PathSLs.SetPorts(fill(partly.PortRow(port)), port)
			}
			full := mustCheck(t, in, Options{Workers: 1})
			for _, rule := range []string{SLDropped, CreditLoop, ManagementSLDropped} {
				switch is := countFindings(full.Findings, rule); {
				case is > 0 && countFindings(got.Findings, rule) == 0 && !open(rule):
					t.Fatalf("trial %d: %s is decided and not found, and there is one with some SLs", trial, rule)
				case countFindings(got.Findings, rule) > is:
					t.Fatalf("trial %d: %s is found %d times, and with some SLs %d", trial, rule, countFindings(got.Findings, rule), is)
				}
			}
		}
		switch {
		case len(got.Undecided) > 0:
			undecided++
		case got.Worst() >= Error:
			found++
		default:
			decided++
		}
	}
	if decided < 10 || undecided < 10 || found < 10 {
		t.Errorf("%d decided, %d undecided, %d found: the trials do not cover everything", decided, undecided, found)
	}
}
