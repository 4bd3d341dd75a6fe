package plugin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// autoRoute routes a fabric with ibweave-auto and a cache directory.
func autoRoute(t *testing.T, o *opened, cache string, f *fabric.Fabric) *Tables {
	t.Helper()
	o.host.CacheDir = cache
	got, err := o.Route(o.engine(autoName), snapshotOf(f, rand.New(rand.NewPCG(1, 2))))
	if err != nil {
		t.Fatal(err)
	}
	o.Written(got)
	return got
}

// TestAuto wants the tables of the engine that compile chooses, for each kind of fabric, and that engine again after a
// restart on a fabric that has changed.
func TestAuto(t *testing.T) {
	for name, make := range map[string]func() (*fabric.Fabric, error){
		"tree": func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}) },
		"mesh": func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}) },
		"irregular": func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 40, Seed: 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := make()
			f = withLIDs(t, f, err)
			_, want, err := choice.Choose(t.Context(), f, compile.Options{LIDs: lft.LIDOptions{Policy: lft.KeepLIDs, LMC: lft.KeepLMC}})
			if err != nil {
				t.Fatal(err)
			}
			cache := t.TempDir()
			o := open(t, "")
			got := autoRoute(t, o, cache, f)
			if got.Engine != Prefix+want.Engine.Name() || countDifferent(got.Routing.Tables, want.Routing.Tables) > 0 {
				t.Errorf("tables of %s, want those of %s", got.Engine, want.Engine.Name())
			}
			lines := strings.Join(o.lines, "\n")
			if !strings.Contains(lines, "ibweave-auto: routes with "+want.Engine.Name()+": ") || !strings.Contains(lines, " "+got.Engine+": ") {
				t.Errorf("OpenSM's log has %q", lines)
			}
			cables, _ := f.SwitchLinks(1)
			again := open(t, "")
			cut := autoRoute(t, again, cache, f.Without(cables[0]))
			if name == "mesh" { // XY refuses it
				if !strings.Contains(strings.Join(again.lines, "\n"), "ibweave-auto: xy no longer routes the fabric") || !clean(cut.Verify) {
					t.Errorf("%s: %q", cut.Engine, again.lines)
				}
			} else if cut.Engine != got.Engine || !strings.Contains(strings.Join(again.lines, "\n"), "ibweave-auto: routes with "+want.Engine.Name()+", as "+cache) {
				t.Errorf("%s after a restart, %s before: %q", cut.Engine, got.Engine, again.lines)
			}
			if next := autoRoute(t, o, cache, f.Without(cables[0])); next.Engine != cut.Engine {
				t.Errorf("%s after a failure, %s after a restart", next.Engine, cut.Engine)
			}
		})
	}
}

// TestAutoFile wants a file of the choice that is of no use, or of another fabric, to be replaced.
func TestAutoFile(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f = withLIDs(t, f, err)
	cases := map[string]struct {
		make func(file string) error
		line string
	}{
		"broken":  {func(file string) error { return os.WriteFile(file, []byte("fattree\x00"), 0o600) }, `is not used: `},
		"unknown": {func(file string) error { return os.WriteFile(file, []byte("best 12\n"), 0o600) }, "is not used: "},
		"other": {func(file string) error { return os.WriteFile(file, []byte("updn 40\n"), 0o600) },
			"is not used: it is of a fabric with 40 switches, and this one has 12"},
		"large": {func(file string) error {
			return os.WriteFile(file, slices.Concat([]byte("updn 12"), make([]byte, 4096)), 0o600)
		}, "is not used: "},
		"FIFO":   {func(file string) error { return syscall.Mkfifo(file, 0o600) }, "is not used: "},
		"folder": {func(file string) error { return os.Mkdir(file, 0o700) }, "ERR IBW9"},
		"used":   {func(file string) error { return os.WriteFile(file, []byte("updn 12\n"), 0o600) }, "routes with updn, as "},
	}
	for _, name := range short.Keys(cases, "used") {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			file := filepath.Join(cache, ChoiceName)
			if err := tc.make(file); err != nil {
				t.Fatal(err)
			}
			o := open(t, "")
			got := autoRoute(t, o, cache, f)
			if !strings.Contains(strings.Join(o.lines, "\n"), tc.line) {
				t.Errorf("OpenSM's log has %q", o.lines)
			}
			text, err := os.ReadFile(file)
			want := fmt.Sprintf("%s 12\n", strings.TrimPrefix(got.Engine, Prefix))
			if name != "folder" && name != "FIFO" && (err != nil || string(text) != want) {
				t.Errorf("the file has %q %v, want %q", text, err, want)
			}
		})
	}
}
