package main

import (
	"context"
	"errors"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
)

// readHostGroups reads the file of --host-groups. Commands call it before they do what takes long.
func (a *app) readHostGroups() (err error) {
	if g := &a.hostGroups; g.name != "" {
		g.file, err = groups.Read(g.name, a.readInput)
	}
	return err
}

// groupsOf finds the groups of --host-groups in a fabric; nil without
// the flag. With tell it prints what is odd about them, once in a run.
func (a *app) groupsOf(f *fabric.Fabric, tell bool) (*groups.Set, error) {
	g := &a.hostGroups
	if g.file == nil {
		return nil, nil
	}
	s, err := g.file.In(f)
	if errors.Is(err, groups.ErrNoHosts) {
		return nil, open.NewError(err)
	}
	if tell && err == nil && !g.told {
		g.told = true
		a.listProblems(len(s.Notes), false, func(i int) string { return s.Notes[i] })
	}
	return s, err
}

// groupStates measures the groups of --host-groups in a fabric,
// whose tables may be nil. It returns nil without the flag.
func (a *app) groupStates(ctx context.Context, f *fabric.Fabric, tables *lft.Tables, tell bool) ([]groups.State, error) {
	s, err := a.groupsOf(f, tell)
	if s == nil || err != nil {
		return nil, err
	}
	return s.Measure(ctx, f, tables)
}
