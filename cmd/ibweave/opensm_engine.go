package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/verify"
)

// openSMPrefix begins the name of an engine of OpenSM: "opensm:ftree".
const openSMPrefix = "opensm:"

// openSMLanes are the engines of OpenSM that keep paths apart by lanes, which its dumps do not
// tell.
var openSMLanes = []string{"dfsssp", "lash", "nue", "torus-2QoS"}

// maxOpenSMDump is the greatest dump that is read, in bytes.
const maxOpenSMDump = 8 << 30

// contendByOpenSM has the OpenSM of this machine route f on ibsim, with the LIDs that our
// engines have.
func (a *app) contendByOpenSM(ctx context.Context, c *contest, f *fabric.Fabric, engine string, opt compile.Options) (*contender, error) {
	x := &contender{Name: openSMPrefix + engine}
	g, err := lft.AssignLIDs(f, opt.LIDs)
	if err != nil {
		return nil, lidInput(c.topology, &compile.LIDError{Err: err})
	}
	s := a.startStage(x.Name + ": ibsim")
	tables, used, err := routeByOpenSM(ctx, g, engine)
	s.end()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(used, engine) {
		x.Refused = "OpenSM has fallen back to " + used
		return x, nil
	}
	in := audit{unknownSLs: slices.Contains(openSMLanes, engine)}
	if x.Verify, err = a.verify(ctx, &in, g, tables, &verify.Options{Complete: true}); err != nil {
		return nil, err
	}
	return x, a.measure(ctx, c, x, &lft.Routing{Fabric: g, Tables: tables})
}

// routeByOpenSM also returns the engine that OpenSM has used in the end.
func routeByOpenSM(ctx context.Context, f *fabric.Fabric, engine string) (tables *lft.Tables, used string, err error) {
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		return nil, "", err
	}
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{})
	if err != nil {
		return nil, "", err
	}
	defer sim.Close() // with the folder of OpenSM
	lmc := uint8(0)
	for _, p := range f.CAPorts() {
		lmc = max(lmc, f.LMC(p))
	}
	const dumps = 0x43 // tables, and what is said by default
	run, err := ibsim.RunOpenSM(ctx, sim, ibsim.OpenSMConfig{Engine: engine, Flags: dumps, LMC: lmc})
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(run.Dir, "opensm-lfts.dump")
	data, err := files.ReadRegular(file, maxOpenSMDump)
	if err != nil {
		return nil, "", err
	}
	tables, _, err = dump.ReadLFTs(file, data, twin.Fabric, dump.Options{})
	return tables, run.Engine, err
}
