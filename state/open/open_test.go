package open_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
)

// form is a file that a folder may have: what it tells, and how good it is among those that tell
// the same, 0 for the best.
type form struct {
	part state.Part
	rank int
	name string
	text []byte
}

// forms writes a compiled torus in every form that tells its parts.
func forms(t *testing.T) []form {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 3}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	e := short.Must(compile.EngineByName("xy"))(t)
	hosts := f.CAPorts()
	r := short.Must(compile.Run(t.Context(), f, e, compile.Options{Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
		return []mft.Group{{Name: "some", Receivers: hosts[:4], Senders: hosts[:2]}}, nil
	}}))(t)
	dir := filepath.Join(t.TempDir(), "tables")
	short.Must(outdir.Write(t.Context(), dir, r, outdir.Options{InstallDir: dir}))(t)
	read := func(name string) []byte {
		return short.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	}
	return []form{
		{state.Topology, 0, "net", read(outdir.TopologyName)},
		{state.Topology, 1, "list", read(outdir.SubnetListName)},
		{state.ForwardingTables, 0, "lfts", read(outdir.LFTsName)},
		{state.ForwardingTables, 1, "fdbs", read(outdir.FDBsName)},
		{state.SL2VLTables, 0, "lanes", read(outdir.SL2VLName)},
		{state.SLsOfPaths, 0, "sls", read(outdir.PathSLsName)},
		{state.MulticastTables, 0, "mcfdbs", read(outdir.MCFDBsName)},
		{state.MulticastTables, 1, "mfts", read(outdir.MFTsName)},
	}
}

// same returns an error if two states differ in a table.
func same(x, y *state.State) error {
	if !bytes.Equal(topology.Append(nil, x.Fabric), topology.Append(nil, y.Fabric)) {
		return errors.New("other fabrics")
	}
	write := func(s *state.State) (string, error) {
		var b bytes.Buffer
		var err error
		if s.Tables != nil {
			err = dump.WriteLFTs(&b, s.Fabric, s.Tables, dump.WriteOptions{})
		}
		if s.SL2VL != nil {
			err = errors.Join(err, dump.WriteSL2VL(&b, s.SL2VL, dump.WriteOptions{}))
		}
		if s.PathSLs != nil {
			err = errors.Join(err, dump.WritePathSLs(&b, s.Fabric, s.PathSLs, dump.WriteOptions{}))
		}
		if s.Multicast != nil {
			err = errors.Join(err, dump.WriteMCFDBs(&b, s.Multicast.Tables, dump.WriteOptions{}))
		}
		return b.String(), err
	}
	a, err := write(x)
	b, err2 := write(y)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if a != b {
		return errors.New("other tables")
	}
	return nil
}

// archive writes files into a tar archive, in a folder of it.
func archive(t *rapid.T, path string, order []string, texts map[string][]byte) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range order {
		short.Check(t, w.WriteHeader(&tar.Header{Name: "run/" + name, Typeflag: tar.TypeReg, Mode: 0o666, Size: int64(len(texts[name]))}))
		short.Must(w.Write(texts[name]))(t)
	}
	short.Check(t, errors.Join(w.Close(), os.WriteFile(path, b.Bytes(), 0o666)))
}

// Whatever files a folder has, under whatever names and in whatever order: of each part the best
// form is read, copies of it are refused, what is missing is nil, and what has no sense without
// another part is undecided.
func TestFolders(t *testing.T) {
	all := forms(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(rapid.Uint32().Draw(rt, "folder")))
		taken, copied := map[state.Part]string{}, false
		names := map[string][]byte{}
		for _, x := range all { // the best form of a part before the others
			copies := rapid.SampledFrom([]int{0, 0, 1, 1, 1, 1, 1, 1, 2}).Draw(rt, x.name)
			for i := range copies {
				name := fmt.Sprintf("%c-%s-%d", 'a'+rapid.IntRange(0, 25).Draw(rt, "first letter"), x.name, i)
				names[name] = x.text
				if taken[x.part] == "" {
					taken[x.part] = name
					copied = copied || copies > 1
				}
				if rapid.IntRange(0, 9).Draw(rt, "packed, too") == 0 {
					names[name+".gz"] = x.text // its text is that of the file beside it
				}
			}
		}
		names["notes.txt"] = []byte("ibnetdiscover said 12 switches\n")
		write := func(dir string, order []string) {
			short.Check(rt, os.MkdirAll(dir, 0o777))
			for _, name := range order {
				short.Check(rt, os.WriteFile(filepath.Join(dir, name), names[name], 0o666))
			}
		}
		order := slices.Sorted(maps.Keys(names))
		write(dir, order)
		opt := open.Options{TakeAdaptive: true, TakePKeys: true, Sums: map[string]string{}}
		s, err := open.Path(context.Background(), dir, opt)
		if taken[state.Topology] == "" || copied {
			if _, known := errors.AsType[*open.Error](err); !known {
				rt.Fatalf("%v; want an error that says what the folder lacks, or has twice", err)
			}
			return
		}
		short.Check(rt, err)
		if taken[state.SL2VLTables] == "" && taken[state.SLsOfPaths] != "" {
			delete(taken, state.SLsOfPaths)
			if len(s.Undecided) != 1 || s.Undecided[0].Part != state.SL2VLTables {
				rt.Errorf("%+v is undecided; want the lanes, since there are SLs without them", s.Undecided)
			}
		} else if len(s.Undecided) > 0 {
			rt.Errorf("%+v is undecided; want nothing", s.Undecided)
		}
		short.Equal(rt, len(s.Sources), len(taken), "read", s.Sources, "want", taken)
		for part, name := range taken {
			x, _ := s.Source(part)
			if x.File != filepath.Join(dir, name) || x.SHA256 != open.Sum(names[name]) {
				rt.Errorf("%s is of %+v; want %s", part, x, name)
			}
		}
		if s.UnknownSLs != (s.PathSLs == nil) || (s.Tables == nil) != (taken[state.ForwardingTables] == "") || (s.Multicast == nil) != (taken[state.MulticastTables] == "") {
			rt.Errorf("%+v; want what %v have", s, taken)
		}
		// In another order of writing, in an archive, and from the files by name.
		order = rapid.Permutation(order).Draw(rt, "order")
		write(dir+"-again", order)
		archive(rt, dir+".tar", order, names)
		for _, path := range []string{dir + "-again", dir + ".tar"} {
			again, err := open.Path(context.Background(), path, open.Options{})
			if err == nil {
				err = same(s, again)
			}
			if err != nil {
				rt.Errorf("%s: %v", path, err)
			}
		}
		var files open.Files
		for part, name := range taken {
			files.Name(part, filepath.Join(dir, name))
		}
		named, err := open.Named(context.Background(), files, open.Options{})
		if err == nil {
			err = same(s, named)
		}
		if err != nil {
			rt.Error("by name: ", err)
		}
	})
}

// A folder with net_dump alone has a topology; beside a better one it is compared with it.
func TestNetDumpOfRun(t *testing.T) {
	const ended = "# This database file was automatically generated by IBDIAG\n# Running version   : \"IBDIAGNET 2.10.0\"\n\n%s\n# File closed at : 2026\n"
	netDump := fmt.Sprintf(ended, "\"leaf\", Mellanox, 0x10, LID 1\n# : IB# : Sta : LWA : LSA : Neighbor Guid : N# : NLID : Neighbor Description\n"+
		"1 : 1 : ACT : 4x : 100 : 0x20 : 1 : 2 : \"host\"\n")
	list := fmt.Sprintf(ended, "{ CA Ports:1 SystemGUID:20 NodeGUID:20 PortGUID:20 VenID:0 DevID:0 Rev:0 {host} LID:0002 PN:1 } { SW Ports:1 SystemGUID:10 NodeGUID:10 PortGUID:10 VenID:0 DevID:0 Rev:0 {leaf} LID:0003 PN:1 } PHY=4x LOG=ACT SPD=100")
	dir := t.TempDir()
	for _, test := range []struct{ name, text, taken string }{
		{"ibdiagnet2.net_dump", netDump, "ibdiagnet2.net_dump"}, {"ibdiagnet2.lst", list, "ibdiagnet2.lst"},
	} {
		short.Check(t, os.WriteFile(filepath.Join(dir, test.name), []byte(test.text), 0o666))
		var in open.Input
		short.Check(t, in.FindIn(dir, false))
		short.Equal(t, filepath.Base(in.Topology), test.taken, "topology")
		short.Equal(t, short.Must(in.Fabric())(t).NumNodes(), 2, "nodes")
	}
}

// What pull asks for by default is at most 45 requests for each end port, so that a fabric of 1,336 ports takes
// at most 60,000 (42,544 were sent for 1,344 ports; this fabric has 612), and about as many as it says before. It is the same that
// asking for everything gives. Of paths it asks for a sample alone, since OpenSM uses one SL.
func TestRequests(t *testing.T) {
	short.NeedPrograms(t)
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: short.Of(12, 8), Levels: 3})
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
	}
	short.Check(t, err)
	sim, _ := ibsimtest.Start(t, f)
	sm := short.Must(ibsim.StartOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: "minhop", Dir: t.TempDir(), Options: []string{"sweep_interval 0"}}))(t)
	defer func() { _ = sm.Stop() }()
	live := func(opt open.LiveOptions) *open.Swept {
		t.Helper()
		transport := short.Must(sim.Dial(t.Context(), ""))(t)
		c := subnet.New(transport, subnet.Options{})
		defer func() { _ = c.Close() }()
		s, err := open.Live(t.Context(), c, opt)
		if err != nil || len(s.Problems) > 0 || s.SLsFailed != nil {
			t.Fatal(err, s)
		}
		return s
	}
	said, found := 0, 0
	transport := short.Must(sim.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{})
	d, err := c.Discover(t.Context())
	if found = d.Requests; err != nil || c.Close() != nil {
		t.Fatal(err)
	}
	some := live(open.LiveOptions{SomeMaps: true, PathSLs: true, PKeys: true, Before: func(n int, _ string) { said += n }})
	ports := 0
	some.Fabric.EndPorts(func(fabric.PortID) { ports++ })
	if most := 60_000 * ports / 1336; some.Requests > most || some.SampledSLs == 0 || some.FewSLs {
		t.Errorf("%d requests for %d end ports, want at most %d; %d paths were sampled", some.Requests, ports, most, some.SampledSLs)
	}
	if asked := some.Requests - found - some.SampledSLs; 10*said < 8*asked || 8*said > 10*asked {
		t.Errorf("%d requests were announced, and %d sent", said, asked)
	}
	t.Logf("%d end ports: %d announced, %d sent, %d of %d maps", ports, said, some.Requests, some.AskedMaps, some.Maps)
	some.PathSLs = nil
	all := live(open.LiveOptions{MaxMLID: 0xc01f})
	if err := same(some.State, all.State); err != nil || all.AskedMaps != all.Maps || some.AskedMaps*4 > all.Maps {
		t.Errorf("%d maps asked for, and %d of %d by default: %v", all.AskedMaps, some.AskedMaps, some.Maps, err)
	}
}
