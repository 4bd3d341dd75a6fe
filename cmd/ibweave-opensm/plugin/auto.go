package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
)

// autoName is the name for the engine that `ibweave compile` would choose for the fabric.
const autoName = "auto"

// ChoiceName is the file in OpenSM's cache directory with the chosen engine
// and the number of switches that the fabric had then, such as: fattree 206.
const ChoiceName = "ibweave-engine"

// maxChoice is the greatest size of that file. If the number of switches changes by a
// factor above maxGrowth, an engine is chosen again: the choice was for another fabric.
const (
	maxChoice  = 256
	maxGrowth  = 2
	choiceNeed = 5 // times the memory of a routing: candidates are routed together
)

// compileAuto compiles with the engine that was chosen for the fabric. It chooses one
// if none was, or if that one no longer routes the fabric. The caller holds p.routing.
func (p *Plugin) compileAuto(ctx context.Context, f *fabric.Fabric, opt compile.Options, found *lft.Tables) (*compile.Result, compile.Step, error) {
	if p.auto == nil {
		p.auto = p.readChoice(f.NumSwitches())
	}
	if e := p.auto; e != nil {
		r, step, err := p.compileBy(ctx, f, e, opt, found)
		refused := (*lft.DomainError)(nil)
		why := err
		if err == nil {
			why = verdict(r.Verify)
		}
		if why == nil || err != nil && !errors.As(err, &refused) {
			return r, step, err
		}
		p.tellChoice(e.Name() + " no longer routes the fabric: " + why.Error())
	}
	if err := fits(choiceNeed*p.needs(f), "to choose an engine"); err != nil {
		return nil, compile.Step{}, &Error{Code: Limits, Err: err}
	}
	c, _, err := choice.Choose(ctx, f, opt)
	if err != nil {
		return nil, compile.Step{}, err
	}
	if p.auto, err = compile.EngineByName(c.Engine); err != nil {
		return nil, compile.Step{}, err
	}
	p.tellChoice(fmt.Sprintf("routes with %s: %s", c.Engine, c.Why))
	p.writeChoice(fmt.Sprintf("%s %d\n", c.Engine, f.NumSwitches()))
	return p.compileBy(ctx, f, p.auto, opt, found)
}

// tellChoice puts a line about the choice into our log and OpenSM's.
func (p *Plugin) tellChoice(line string) { p.tell(Prefix + autoName + ": " + oneLine(line)) }

// readChoice returns the engine that was chosen before OpenSM was started;
// nil for none, or if it was for a very different number of switches.
func (p *Plugin) readChoice(switches int) *compile.Engine {
	if p.host.CacheDir == "" {
		return nil
	}
	name := filepath.Join(p.host.CacheDir, ChoiceName)
	in := background[[]byte]{file: name}
	data, err := in.get(fileTimeout, func() ([]byte, error) { return readFile(name, maxChoice, 1) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var engine string
	var e *compile.Engine
	had := 0
	if err == nil {
		_, err = fmt.Sscanf(string(data), "%s %d\n", &engine, &had)
	}
	if err == nil {
		e, err = compile.EngineByName(engine)
	}
	if err == nil && (had > maxGrowth*switches || switches > maxGrowth*had) {
		err = fmt.Errorf("it is of a fabric with %d switches, and this one has %d", had, switches)
	}
	if err != nil {
		p.tellChoice(fmt.Sprintf("%s is not used: %v; want an engine and the number of switches, such as: fattree 206", name, err))
		return nil
	}
	p.tellChoice(fmt.Sprintf("routes with %s, as %s says", e.Name(), name))
	return e
}

// writeChoice writes the file for readChoice. An error goes to both logs and stops nothing.
func (p *Plugin) writeChoice(text string) {
	if p.host.CacheDir == "" {
		return
	}
	name := filepath.Join(p.host.CacheDir, ChoiceName)
	out := background[bool]{file: name}
	_, err := out.get(fileTimeout, func() (bool, error) {
		return true, files.Write(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	})
	if err != nil {
		p.log.Warn(oneLine(err.Error()))
		p.logTrouble(LogError, fmt.Errorf("%w; after a restart an engine is chosen again", err))
	}
}
