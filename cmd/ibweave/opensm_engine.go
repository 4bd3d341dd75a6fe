package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/compare"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
)

// openSMEngines lists the engines of OpenSM. openSMLanes are those that need virtual lanes to
// be free of credit loops: for them SL-to-VL tables and path SLs are read, too.
var (
	openSMEngines = []string{"minhop", "updn", "dnup", "ftree", "dor", "sssp", "lash", "dfsssp", "nue", "torus-2QoS"}
	openSMLanes   = openSMEngines[6:]
)

// maxOpenSMDump is the most bytes of a dump.
const maxOpenSMDump = 8 << 30

// routeByOpenSM lets an engine of OpenSM route f on ibsim, with the options of
// a site. in records which lanes could not be read. used is the engine that
// OpenSM used in the end; lanes are read only if it is the one asked for.
func (a *app) routeByOpenSM(ctx context.Context, f *fabric.Fabric, engine string, site *siteOptions) (r *lft.Routing, in *audit, used string, err error) {
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		return nil, nil, "", err
	}
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{})
	if err != nil {
		return nil, nil, "", err
	}
	defer sim.Close() // removes OpenSM's folder, too
	lmc := uint8(0)
	for _, p := range f.CAPorts() {
		lmc = max(lmc, f.LMC(p))
	}
	const dumps = 0x43 // log flags: tables, and the default
	cfg := ibsim.OpenSMConfig{Engine: engine, Flags: dumps, LMC: lmc, Options: []string{"sweep_interval 0"}}
	site.apply(&cfg, twin)
	lanes := slices.Contains(openSMLanes, engine)
	if lanes {
		// Else OpenSM writes no SL-to-VL tables.
		cfg.Options = append(cfg.Options, "qos TRUE")
	}
	s := a.startStage(compare.OpenSM + engine + ": ibsim")
	// OpenSM writes the dumps before it reports the subnet up.
	o, err := ibsim.StartOpenSM(ctx, sim, cfg)
	s.End()
	if err != nil {
		return nil, nil, "", err
	}
	defer func() { err = errors.Join(err, o.Stop()) }()
	run := o.Run()
	r, in = &lft.Routing{Fabric: f}, &audit{}
	name, data, err := readOpenSMDump(run.Dir, outdir.LFTsName)
	if err != nil {
		return nil, nil, "", err
	}
	if r.Tables, _, err = dump.ReadLFTs(name, data, twin.Fabric, dump.Options{}); err != nil || !lanes || !strings.EqualFold(run.Engine, engine) {
		return r, in, run.Engine, err
	}
	if r.SL2VL, err = in.readOpenSMLanes(run.Dir, twin.Fabric, f); err == nil {
		r.PathSLs, err = a.askPathSLs(ctx, sim, f, r.SL2VL)
	}
	in.State.UnknownSLs = true // unless there are path SLs
	return r, in, run.Engine, err
}

func readOpenSMDump(dir, base string) (name string, data []byte, err error) {
	name = filepath.Join(dir, base)
	data, err = files.ReadRegular(name, maxOpenSMDump)
	return name, data, err
}

// readOpenSMLanes reads the SL-to-VL tables that OpenSM wrote for the
// twin of f. Ports of CAs and routers, whose GUIDs may differ there,
// are matched by LID. Ports without a row leave rules undecided.
func (in *audit) readOpenSMLanes(dir string, twin, f *fabric.Fabric) (*lft.SL2VL, error) {
	name, data, err := readOpenSMDump(dir, outdir.SL2VLName)
	if err != nil {
		return nil, err
	}
	read, problems, err := dump.ReadSL2VL(name, data, twin, dump.Options{})
	if err != nil {
		return nil, err
	}
	in.State.Undecided = append(in.State.Undecided, state.UndecidedBy(state.SL2VLTables, problems)...)
	s := lft.NewSL2VL(f, lft.ConstantVL(0))
	for from, out := range read.PortPairs() {
		port := f.LIDPort(twin.LID(out))
		if n := twin.Owner(out); twin.IsSwitch(n) {
			port = f.Port(n, twin.Num(out)) // switches have the same numbers
		}
		if port != fabric.NoPort {
			s.Set(from, port, *read.At(from, out))
		}
	}
	return s, nil
}

// askPathSLs asks the OpenSM on sim for the SLs of all paths of f. If
// it does not answer, a line goes to standard error and sls is nil.
func (a *app) askPathSLs(ctx context.Context, sim *ibsim.Sim, f *fabric.Fabric, sl2vl *lft.SL2VL) (sls *lft.PathSLs, err error) {
	transport, err := sim.Dial(ctx, "")
	if err != nil {
		return nil, err
	}
	c := subnet.New(transport, subnet.Options{})
	defer func() { err = errors.Join(err, c.Close()) }()
	s := open.Swept{State: &state.State{Fabric: f, SL2VL: sl2vl}}
	if !open.HasFewSLs(sl2vl) { // SLs do not matter with one VL
		err = s.AskPathSLs(ctx, c, true, nil)
	}
	if s.SLsFailed != nil {
		fmt.Fprintf(a.stderr, "ibweave: path SLs were not read: %v; what depends on them is undecided\n", s.SLsFailed)
	}
	return s.PathSLs, err
}
