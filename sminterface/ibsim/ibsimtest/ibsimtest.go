// Package ibsimtest runs the real ibsim, and OpenSM on it, for tests of other packages. It
// makes no promise to other modules.
package ibsimtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// Start runs ibsim on a fabric until the test ends; under -short it skips the test.
func Start(t testing.TB, f *fabric.Fabric) (*ibsim.Sim, *ibsim.Twin) {
	t.Helper()
	short.NeedPrograms(t)
	twin := short.Must(ibsim.NewTwin(f))(t)
	sim := short.Must(ibsim.StartTwin(t.Context(), twin, ibsim.Config{}))(t)
	t.Cleanup(func() { short.Check(t, sim.Close()) })
	return sim, twin
}

// Route runs OpenSM once with one of its own engines. It returns
// the tables, and the run, which may have used another engine.
func Route(t testing.TB, f *fabric.Fabric, engine string) (*lft.Tables, *ibsim.OpenSMRun) {
	t.Helper()
	sim, twin := Start(t, f)
	run := short.Must(ibsim.RunOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: engine, Dir: t.TempDir(), Flags: 0x43}))(t)
	file := filepath.Join(run.Dir, "opensm-lfts.dump")
	data := short.Must(os.ReadFile(file))(t)
	tables, _ := short.Must2(dump.ReadLFTs(file, data, twin.Fabric, dump.Options{}))(t)
	return tables, run
}
