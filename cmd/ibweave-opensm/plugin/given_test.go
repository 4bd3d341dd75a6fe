package plugin

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
)

var topologies = flag.String("fabrics", "", "patterns of topology files for TestFirstStep and TestRestart, with commas, in place of their own fabrics")

// fabricCase is a fabric and the engine for it.
type fabricCase struct {
	name, engine string
	make         func() (*fabric.Fabric, error)
}

// givenFabrics lists each fabric of -fabrics with each engine that keeps tables and routes it on one lane, or own without files.
func givenFabrics(t *testing.T, own []fabricCase) (list []fabricCase) {
	t.Helper()
	if *topologies == "" {
		return own
	}
	for pattern := range strings.SplitSeq(*topologies, ",") {
		for _, file := range short.Must(filepath.Glob(pattern))(t) {
			f, _, err := topology.Parse(file, short.Must(os.ReadFile(file))(t), topology.Options{Lenient: true})
			if err != nil {
				t.Fatal(err)
			}
			g := withLIDs(t, f, nil)
			for _, engine := range []string{"updn", "fattree", "layered", "minhop"} {
				o := open(t, "log: {file: /dev/null}\n")
				if _, err := o.Route(o.engine(engine), snapshotOf(g, rand.New(rand.NewPCG(1, 2)))); err == nil && g.NumSwitches() > 1 {
					list = append(list, fabricCase{filepath.Base(file), engine, func() (*fabric.Fabric, error) { return f, nil }})
				}
			}
		}
	}
	return list
}
