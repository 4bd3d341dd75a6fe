package plugin

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
)

// ShadowName is the compiled directory beside our log that has the last tables with `shadow: true`.
const ShadowName = "ibweave-shadow"

// InShadow returns true if tables are not installed: OpenSM is to take its next engine.
func (p *Plugin) InShadow() bool { return p.failed == nil && p.config.Shadow }

func (p *Plugin) writeShadow(r **compile.Result) error {
	dir := filepath.Join(p.host.LogDir, ShadowName)
	if _, err := outdir.Write(context.Background(), dir, *r, outdir.Options{InstallDir: dir, Lean: true, Force: true}); err != nil {
		return fmt.Errorf("%s is not written: %w", dir, err)
	}
	return nil
}
