package main

import "github.com/ibweave/ibweave/cmd/cli"

// stage is something under way that may take long.
type stage struct{ *cli.Stage }

// startStage shows a stage on standard error, see cli.StartStage.
func (a *app) startStage(name string) stage { return stage{cli.StartStage(a.screen, name)} }

// set sets how much is done, of all.
func (s stage) set(done, total int) { s.Set(done, total) }

// end takes the stage off the screen.
func (s stage) end() { s.End() }
