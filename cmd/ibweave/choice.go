package main

import (
	"context"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/compile"
)

// routeChosen routes with the engine that suits the fabric best.
func (a *app) routeChosen(ctx context.Context, c *compilation, label func(stage string) string) (*compile.Result, error) {
	s := a.startStage(label("choose an engine for"))
	found, r, err := choice.Choose(ctx, c.fabric, c.opt)
	s.End()
	if err != nil {
		return nil, err
	}
	c.engine, c.choice = r.Engine, found
	if c.opt.Groups == nil && c.opt.Demand == nil {
		return r, nil
	}
	return a.runEngine(ctx, c.fabric, c.engine, c.opt, label)
}
