package lft_test

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// TestSLsInUse: those that are not known do not count, and those of single ports do.
func TestSLsInUse(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{2}, Hosts: 1}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	p := lft.UnknownPathSLs(f.NumSwitches(), f.MaxLID())
	if n := p.InUse(f); n != 0 {
		t.Errorf("%d SLs, and none is known", n)
	}
	p.SetRow(slices.Repeat([]fabric.SL{3}, int(f.MaxLID())+1), 0)
	p.SetPorts(slices.Repeat([]fabric.SL{5}, int(f.MaxLID())+1), f.CAPorts()[0])
	if n := p.InUse(f); n != 2 {
		t.Errorf("%d SLs, want 2", n)
	}
}
