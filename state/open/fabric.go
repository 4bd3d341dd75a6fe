package open

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
)

// Fabric returns the fabric. The first call reads it from text of any form, a folder or an archive.
func (in *Input) Fabric() (*fabric.Fabric, error) {
	if in.State.Fabric != nil {
		return in.State.Fabric, nil
	}
	if err := in.enter(); err != nil {
		return nil, err
	}
	name := in.Topology
	if _, known := in.databases[name]; known || Database(name) {
		d, err := in.databaseAt(name)
		if err != nil {
			return nil, err
		}
		return in.fabricOf(d)
	}
	text, err := in.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if dump.Recognize(text) == dump.Database { // from standard input
		d, err := ibdiagnet.Read(name, bytes.NewReader(text), in.databaseOptions())
		if err != nil {
			return nil, err
		}
		return in.fabricOf(d)
	}
	f, err := in.parseTopology(name, text)
	if err = cmp.Or(files.CheckUnchanged(name), err); err != nil {
		return nil, err
	}
	if in.Compiled != nil && name == filepath.Join(in.Compiled.Path, outdir.TopologyName) {
		if f, err = in.Compiled.WithVirtualLIDs(f); err != nil {
			return nil, &Error{err}
		}
	}
	if in.TakeLines {
		in.State.Lines = TopologyLines(name, text)
	}
	in.source(state.Topology, name, text)
	in.compareRun(f)
	in.UseFabric(f)
	return f, nil
}

// UseFabric makes f the State's fabric, and takes P_Keys, manager and MFT sizes from Database.
func (in *Input) UseFabric(f *fabric.Fabric) {
	in.State.Name, in.State.Fabric, in.State.Manager = in.Topology, f, fabric.NoPort
	if in.Database == nil {
		return
	}
	in.State.PKeys = in.Database.PKeys
	if masters := in.Database.Masters(); len(masters) == 1 {
		if n, known := f.NodeByGUID(masters[0].Node); known && masters[0].PortNum <= f.Node(n).NumPorts {
			in.State.Manager = f.Port(n, masters[0].PortNum)
		}
	}
	in.State.MFTCapacity = nil
	for s := range f.NumSwitches() {
		in.State.MFTCapacity = append(in.State.MFTCapacity, in.Database.Switches[s].MCastFDBCap)
	}
}

// enter replaces a folder or archive in Topology by the topology file that is in it.
func (in *Input) enter() error {
	if _, known := in.databases[in.Topology]; known || in.Topology == "" || in.loaded[in.Topology] != nil || !Folder(in.Topology) {
		return nil
	}
	inside := Input{Options: in.Options}
	inside.TakeAdaptive, inside.TakePKeys, inside.TakeCables = false, false, false
	if err := inside.FindIn(in.Topology, false); err != nil {
		return err
	}
	in.Topology, in.Compiled = inside.Topology, inside.Compiled
	for name, text := range inside.loaded {
		in.Load(name, text)
	}
	in.databases, in.run, in.beside = inside.databases, inside.run, inside.beside
	return nil
}

// fabricOf makes the fabric of a db_csv the State's, and reports what was odd in the file.
func (in *Input) fabricOf(d *ibdiagnet.Database) (*fabric.Fabric, error) {
	f, err := in.rename(d.Fabric)
	if err != nil {
		return nil, err
	}
	in.Database = d
	if d.Virtual > 0 {
		in.notice(f, "virtual ports have %s of their own: check holds tables to them, and compile gives them the entries of their ports (with --lids keep)",
			text.CountGrouped(d.Virtual, "LID", "LIDs"))
	}
	if in.TakeLines {
		in.State.Lines = databaseLines(in.Topology, d)
	}
	if in.Sums != nil {
		in.Sums[in.Topology] = Sum(topology.Append(nil, f))
	}
	in.State.Sources = append(in.State.Sources, state.Source{Part: state.Topology, File: in.Topology, Form: dump.Database.String(), SHA256: in.Sums[in.Topology]})
	in.leave(state.Topology, d.Problems)
	in.tell(f, d.Problems...)
	for _, p := range d.Notice(in.Topology) { // one call of tell for each
		in.tell(f, p)
	}
	in.compareRun(f)
	in.UseFabric(f)
	return f, nil
}

// notice reports a fact about the topology file as a problem of the kind Notice.
func (in *Input) notice(f *fabric.Fabric, format string, args ...any) {
	in.tell(f, fabric.Problem{Kind: fabric.Notice, File: in.Topology, Message: fmt.Sprintf(format, args...), Count: 1})
}

// rename applies the host's Rename to f, if there is one.
func (in *Input) rename(f *fabric.Fabric) (*fabric.Fabric, error) {
	if in.Rename == nil {
		return f, nil
	}
	return in.Rename(f)
}

// parseTopology reads a fabric from text of any form except db_csv.
func (in *Input) parseTopology(name string, text []byte) (*fabric.Fabric, error) {
	if topology.Recognize(text) == topology.UFMLinks {
		if in.HasTables() {
			return nil, errorf("%s: the links of UFM have no LIDs, and forwarding tables go by LIDs; want what ibnetdiscover or iblinkinfo prints, or no tables, to look at the cables alone", name)
		}
		in.notice(nil, "the links of UFM have no LIDs and no speeds; ibweave help forms says what else they lack")
	}
	f, problems, err := topology.Parse(name, text, topology.Options{Lenient: in.Lenient, Strict: in.Strict, TwiceLIDs: in.Findings})
	if err != nil {
		return nil, err
	}
	if f, err = in.rename(f); err != nil {
		return nil, err
	}
	in.leave(state.Topology, problems)
	in.tell(f, problems...)
	return f, nil
}
