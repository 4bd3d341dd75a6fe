package outdir

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// withEnhancedPorts0 is the fabric with every second switch's port 0 enhanced.
func withEnhancedPorts0(t *testing.T, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	var text []byte
	for i, part := range bytes.Split(topology.Append(nil, f), []byte(" base port 0 ")) {
		switch {
		case i == 0:
		case i%2 == 0:
			text = append(text, " base port 0 "...)
		default:
			text = append(text, " enhanced port 0 "...)
		}
		text = append(text, part...)
	}
	g, _ := short.Must2(topology.Parse("enhanced", text, topology.Options{}))(t)
	return g
}

// The real OpenSM, started with nothing but the opensm.conf and guid2lid of a
// compiled directory on a fabric that has other LIDs, or none, ends up with
// exactly our LIDs, tables and SL-to-VL tables, which its own dumps prove.
func TestOpenSMConf(t *testing.T) {
	short.NeedPrograms(t)
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))(t)
	ring := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 9, Degree: 4, Hosts: 12, Seed: 5}))(t)
	grid := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 3}, Hosts: 2}))(t)
	dense := short.Must(lft.AssignLIDs(ring, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
	for _, tc := range []struct {
		name   string
		f      *fabric.Fabric
		engine string
		lids   lft.LIDOptions
		lean   bool
		sl2vl  string
	}{
		{"updn", tree, "updn", lft.LIDOptions{LMC: lft.KeepLMC}, false, ""},
		{"minhop, LMC 1, no comments", tree, "minhop", lft.LIDOptions{LMC: 1}, true, ""},
		{"LMC 2 for enhanced ports 0 too", withEnhancedPorts0(t, ring), "updn", lft.LIDOptions{LMC: 2, EnhancedPort0: true}, false, ""},
		{"LMC 2 for CAs only", withEnhancedPorts0(t, ring), "updn", lft.LIDOptions{LMC: 2}, false, ""},
		{"other LIDs than before", dense, "updn", lft.LIDOptions{
			LMC: lft.KeepLMC, GUID2LID: []lft.LIDRange{{Port: ring.PortGUID(ring.CAPorts()[3]), Min: 500, Max: 500}}}, false, ""},
		{"LIDs by coordinates", grid, "xy", lft.LIDOptions{Policy: lft.MeshLIDs}, false, ""},
		{"four VLs", grid, "xy", lft.LIDOptions{LMC: lft.KeepLMC}, false, compile.SpreadVLs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engine := short.Must(compile.EngineByName(tc.engine))(t)
			r := short.Must(compile.Run(t.Context(), tc.f, engine, compile.Options{LIDs: tc.lids, SL2VL: tc.sl2vl, Route: lft.Options{VLs: map[string]int{compile.SpreadVLs: 4}[tc.sl2vl]}}))(t)
			temp := t.TempDir()
			dir := filepath.Join(temp, "tables")
			short.Must(Write(t.Context(), dir, r, Options{InstallDir: dir}))(t)
			want := short.Must(os.ReadFile(filepath.Join(dir, LFTsName)))(t)
			if tc.lean {
				short.Must(Write(t.Context(), dir, r, Options{InstallDir: dir, Lean: true}))(t)
			}

			before := filepath.Join(temp, "fabric.txt")
			short.Check(t, os.WriteFile(before, topology.Append(nil, tc.f), 0o600))
			sim := short.Must(ibsim.Start(t.Context(), before, ibsim.Config{}))(t)
			defer sim.Close()
			cache, dumps := filepath.Join(temp, "cache"), filepath.Join(temp, "dumps")
			for _, d := range []string{cache, dumps} {
				short.Check(t, os.Mkdir(d, 0o700))
			}
			guid2lid := short.Must(os.ReadFile(filepath.Join(dir, GUID2LIDName)))(t)
			short.Check(t, os.WriteFile(filepath.Join(cache, GUID2LIDName), guid2lid, 0o600))
			cmd := sim.Command(t.Context(), "opensm", "-o", "-D", "0x43", "-F", filepath.Join(dir, ConfigName), "-f", filepath.Join(dumps, "opensm.log"))
			cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+dumps, "OSM_CACHE_DIR="+cache)
			if err := sim.Run(t.Context(), cmd); err != nil {
				log, _ := os.ReadFile(filepath.Join(dumps, "opensm.log"))
				t.Fatalf("%v\n%s", err, log)
			}
			got := short.Must(os.ReadFile(filepath.Join(dumps, "opensm-lfts.dump")))(t)
			short.EqualList(t, got, want, "OpenSM has other tables than", LFTsName, "it dumped")
			if tc.sl2vl == "" {
				return
			}
			want = short.Must(os.ReadFile(filepath.Join(dir, SL2VLName)))(t)
			got = short.Must(os.ReadFile(filepath.Join(dumps, "opensm-sl2vl.dump")))(t)
			short.EqualList(t, got, want, "OpenSM has other SL-to-VL tables than", SL2VLName)
		})
	}
}
