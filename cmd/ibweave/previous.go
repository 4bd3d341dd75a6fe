package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// before is the tables of --previous.
type before struct {
	routing  *lft.Routing
	manifest string // SHA-256
}

func (b *before) sum() string {
	if b == nil {
		return ""
	}
	return b.manifest
}

// readPrevious reads the directory of --previous. A fabric without any LID gets those
// of then.
func (a *app) readPrevious(o *order, e *compile.Engine, f *fabric.Fabric, opt *compile.Options) (*before, error) {
	if len(o.roots) > 0 {
		return nil, usagef("--previous keeps the order of the switches, and --roots gives another")
	}
	if opt.LIDs.Policy != lft.KeepLIDs {
		return nil, usagef("--previous keeps entries, which --lids %s gives to other ports", o.lids)
	}
	in := audit{lenient: o.lenient}
	if err := in.findCompiled(o.previous); err != nil {
		return nil, err
	}
	m, err := outdir.ReadManifest(o.previous)
	if err != nil {
		return nil, &inputError{err}
	}
	if m.Engine != e.Name() {
		return nil, inputf("%s is of engine %s, not %s", o.previous, m.Engine, e.Name())
	}
	if _, ok := e.Engine.(lft.Keeper); !ok {
		return nil, usagef("--previous: %s makes all tables anew, whatever there was", e.Name())
	}
	text, err := a.readInput(filepath.Join(o.previous, outdir.ManifestName))
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(text)
	g, tables, err := a.readTables(&in)
	if err != nil {
		return nil, err
	}
	b := &before{routing: &lft.Routing{Engine: m.Engine, Fabric: g, Tables: tables}, manifest: hex.EncodeToString(hash[:])}
	if _, ok := m.Files[outdir.OrderName]; ok {
		if b.routing.Order, err = a.readOrder(filepath.Join(o.previous, outdir.OrderName), g); err != nil {
			return nil, err
		}
	}
	opt.Route.Previous = b.routing
	if o.guid2lid == "" && f.MaxLID() == 0 {
		opt.LIDs.GUID2LID, err = a.readGUID2LID(filepath.Join(o.previous, outdir.GUID2LIDName), o.lenient)
	}
	return b, err
}

// readOrder reads the rank of each switch.
func (a *app) readOrder(name string, f *fabric.Fabric) ([]int32, error) {
	list, err := a.switchFile(f, name)
	if err != nil {
		return nil, err
	}
	rank := make([]int32, f.NumSwitches())
	for i := range rank {
		rank[i] = -1
	}
	for i, s := range list {
		if rank[s] >= 0 {
			return nil, &fabric.ParseError{File: name, Line: i + 1, Err: fmt.Errorf("%s is there twice", f.Node(s).GUID)}
		}
		rank[s] = int32(i)
	}
	if len(list) != len(rank) {
		return nil, inputf("%s has %s, the fabric has %d", name, text.CountGrouped(len(list), "switch", "switches"), len(rank))
	}
	return rank, nil
}
