package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// What compile writes where files cannot carry a routing is enough for OpenSM with
// the plugin to have it: LIDs, forwarding tables and SL-to-VL tables; the groups are
// there for those who join.
func TestCompiledDirectory(t *testing.T) {
	bare, err := mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	twin, err := ibsim.NewTwin(bare)
	if err != nil {
		t.Fatal(err)
	}
	e, err := compile.EngineByName("xy")
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Run(t.Context(), twin.Fabric, e, compile.Options{
		LIDs: lft.LIDOptions{Policy: lft.MeshLIDs},
		Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
			hosts := f.CAPorts()
			return []mft.Group{
				{Name: "all", Receivers: hosts, Senders: hosts},
				{Name: "some", Receivers: hosts[3:7], Senders: hosts[:1]},
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tables")
	files, err := outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, static, _ := outdir.InstallCommands(dir, files, outdir.Options{InstallDir: dir}); static != nil {
		t.Fatalf("commands for files that cannot carry the routing: %q", static)
	}

	temp := t.TempDir()
	text := filepath.Join(temp, "fabric.txt")
	writeFile(t, text, topology.Append(nil, twin.Fabric))
	sim, err := ibsim.Start(t.Context(), text, ibsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	read := func(name string) []byte {
		data := readFile(t, name)
		return data
	}
	writeFile(t, filepath.Join(temp, outdir.GUID2LIDName), read(filepath.Join(dir, outdir.GUID2LIDName)))
	// Where no engine serves OpenSM tries for ever.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := sim.Command(ctx, "opensm", "-o", "-D", "0x43", "-F", filepath.Join(dir, outdir.PluginOpenSMName), "-f", filepath.Join(temp, "opensm.log"))
	cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+temp, "OSM_CACHE_DIR="+temp)
	if err := sim.Run(ctx, cmd); err != nil {
		t.Fatalf("%v\n%s", err, read(filepath.Join(temp, "opensm.log")))
	}
	log := string(read(filepath.Join(temp, "opensm.log")))
	if strings.Contains(log, "ERR") || !strings.Contains(log, "SUBNET UP") {
		t.Errorf("OpenSM says\n%s", log)
	}
	for name, theirs := range map[string]string{outdir.LFTsName: "opensm-lfts.dump", outdir.SL2VLName: "opensm-sl2vl.dump"} {
		if !bytes.Equal(read(filepath.Join(dir, name)), read(filepath.Join(temp, theirs))) {
			t.Errorf("OpenSM's %s is not ours", theirs)
		}
	}
}

// readFile is what a file has.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
