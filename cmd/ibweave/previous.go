package main

import (
	"path/filepath"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
)

// before is the tables of --previous.
type before struct {
	routing  *lft.Routing
	manifest string // SHA-256
}

// readPrevious reads the directory of --previous. A fabric without any LID gets the LIDs
// of that directory.
func (a *app) readPrevious(c *compilation) (*before, error) {
	dir := c.order.previous
	if len(c.roots) > 0 {
		return nil, usagef("--previous keeps the order of the switches, and --roots gives another")
	}
	if c.opt.LIDs.Policy != lft.KeepLIDs {
		return nil, usagef("--previous keeps entries, which --lids %s gives to other ports", c.lids)
	}
	in := newAudit(c.lenient, false)
	err := in.Directory(dir)
	if err != nil {
		return nil, err
	}
	m := in.Compiled.Manifest
	if c.engine == nil {
		if c.engine, err = compile.EngineByName(m.Engine); err != nil {
			return nil, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
		}
	}
	if m.Engine != c.engine.Name() {
		return nil, inputf("%s is of engine %s, not %s", dir, m.Engine, c.engine.Name())
	}
	if _, ok := c.engine.Engine.(lft.IncrementalEngine); !ok {
		return nil, usagef("--previous: %s makes all tables from scratch", c.engine.Name())
	}
	manifest, err := a.readInput(filepath.Join(dir, outdir.ManifestName))
	if err != nil {
		return nil, err
	}
	b := &before{manifest: open.Sum(manifest)}
	if b.routing, err = a.readCompiledRouting(in); err != nil {
		return nil, err
	}
	c.opt.Route.Previous = b.routing
	if c.guid2lid == "" && c.fabric.MaxLID() == 0 {
		c.opt.LIDs.GUID2LID, err = a.readGUID2LID(filepath.Join(dir, outdir.GUID2LIDName), c.lenient)
	}
	return b, err
}

// sharesSwitches returns true if most switches of g are in f: it is the same fabric, changed.
func sharesSwitches(f, g *fabric.Fabric) bool {
	return 2*text.CountIf(g.Switches(), func(s fabric.NodeID) bool {
		_, shared := f.SwitchByGUID(g.Node(s).GUID)
		return shared
	}) > g.NumSwitches()
}
