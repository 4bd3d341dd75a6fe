// Package outdir writes and reads compiled directories: the files of a verified routing that
// OpenSM loads, their manifest, and the commands that install them. It makes no promise to
// other modules.
package outdir

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// The files of a compiled directory. Those that OpenSM writes too have OpenSM's names.
const (
	LFTsName        = "opensm-lfts.dump"
	LIDMatrixName   = "opensm-lid-matrix.dump"
	GUID2LIDName    = "guid2lid"
	FDBsName        = "opensm.fdbs"
	SubnetListName  = "opensm-subnet.lst"
	TopologyName    = "fabric.ibnetdiscover"
	SL2VLName       = "opensm-sl2vl.dump"
	PathSLsName     = "path-sls.dump"
	PairSLsName     = "path-sl.txt"
	MCFDBsName      = "opensm.mcfdbs"
	MFTsName        = "mfts.dump"
	GroupsName      = "groups.json"
	PartitionsName  = "partitions.conf"
	CertificateName = "certificate.txt"
	// Adaptive tables: as ibdiagnet dumps them, and as JSON.
	FARName      = "ibweave.far"
	AdaptiveName = "adaptive.json"
	ConfigName   = "opensm.conf"
	// OrderName has the order of the switches that an up*/down* engine used, for --previous;
	// compile --roots takes it too.
	OrderName = "switch-order"
	// CAOrderName has the hosts in the order in which shift permutations of them are free of
	// contention, in the form in which OpenSM's ftree writes it.
	CAOrderName = "opensm-ftree-ca-order.dump"
	// The plugin's configuration, and one that makes OpenSM use the plugin.
	PluginConfigName = "ibweave.yaml"
	PluginOpenSMName = "opensm-plugin.conf"
)

// ZstdSuffix ends the names of compressed dumps.
const ZstdSuffix = ".zst"

// Options are the options of Write.
type Options struct {
	Options map[string]any // for the manifest: the other options that made the result
	// Previous is the SHA-256 of the manifest of the directory whose tables were kept, "" for
	// none.
	Previous string
	// InstallDir is the absolute path that opensm.conf gives for the directory.
	InstallDir string
	// Lean leaves the comments out of dumps.
	Lean bool
	// Labels writes the labels of ports into the topology, as ibdiagnet does. ibsim cannot
	// load such a topology.
	Labels bool
	// Zstd compresses the dumps of tables, whose names then end in ZstdSuffix. OpenSM wants
	// them unpacked.
	Zstd bool
	// PairSLs writes the path SLs a second time, a line for each pair, as ibdmchk reads them.
	PairSLs bool
	// Force writes an opensm.conf for OpenSM's file engine even if that engine cannot load
	// all that the proof needs.
	Force bool
	// Only restricts tables to these switches; nil means all. There is no opensm.conf then,
	// since OpenSM would leave the other switches without tables.
	Only []fabric.NodeID
}

// Write writes the files of r as directory dir, all at once (see writeDirectory), and returns
// their names. It does not look at r.Verify: callers must do so before.
func Write(ctx context.Context, dir string, r *compile.Result, opt Options) ([]string, error) {
	if !filepath.IsAbs(opt.InstallDir) {
		return nil, fmt.Errorf("%s is no absolute path, as opensm.conf needs", opt.InstallDir)
	}
	if strings.ContainsAny(opt.InstallDir, " \t\n\r#\"") {
		return nil, fmt.Errorf("%q: OpenSM reads no blanks, quotes or # in the names of files", opt.InstallDir)
	}
	c := &contents{Result: r, opt: opt, options: opt.manifestOptions(r.Routing.Fabric)}
	c.addTables()
	c.addGroups()
	if opt.Only == nil { // there are no configurations for tables of some switches
		qos, err := QoSOptions(r)
		if err == nil || opt.Force {
			c.add(ConfigName, func(w io.Writer) error { return c.writeConfig(w, qos) })
		}
		c.add(PluginConfigName, c.writePluginConfig)
		c.add(PluginOpenSMName, c.writePluginOpenSM)
	}
	m := Manifest{Version: Version, Engine: r.Routing.Engine, Options: c.options, Previous: opt.Previous}
	f := r.Routing.Fabric
	for l, p := range f.VirtualLIDs() {
		if m.VirtualLIDs == nil {
			m.VirtualLIDs = map[fabric.LID]fabric.GUID{}
		}
		m.VirtualLIDs[l] = f.PortGUID(p)
	}
	if err := writeDirectory(ctx, dir, c.files, m); err != nil {
		return nil, err
	}
	names := text.Each(c.files, func(f file) string { return f.name })
	return slices.Sorted(slices.Values(append(names, ManifestName))), nil
}

// contents collects the files of a compiled directory for a result.
type contents struct {
	*compile.Result
	opt     Options
	options map[string]any // of the manifest
	files   []file
}

// add adds a file.
func (c *contents) add(name string, write func(io.Writer) error) {
	c.files = append(c.files, file{name, write})
}

// addDump adds a file with tables, compressed if opt.Zstd is set.
func (c *contents) addDump(name string, write func(io.Writer) error) {
	if !c.opt.Zstd {
		c.add(name, write)
		return
	}
	c.add(name+ZstdSuffix, func(w io.Writer) error { return dump.WriteZstd(w, write) })
}

// addTables adds the fabric, its unicast tables, their certificate and the switch and CA
// orders.
func (c *contents) addTables() {
	f, t := c.Routing.Fabric, c.Routing.Tables
	opt := c.dumpOptions()
	c.addDump(LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, t, opt) })
	c.addDump(LIDMatrixName, func(w io.Writer) error { return dump.WriteLIDMatrix(w, f, t, opt) })
	c.addDump(FDBsName, func(w io.Writer) error { return dump.WriteFDBs(w, f, t, opt) })
	c.add(GUID2LIDName, func(w io.Writer) error { return dump.WriteGUID2LID(w, f) })
	c.add(SubnetListName, func(w io.Writer) error { return dump.WriteSubnetList(w, f) })
	c.add(TopologyName, func(w io.Writer) error {
		if c.opt.Labels {
			return topology.WriteLabelled(w, f)
		}
		return topology.Write(w, f)
	})
	if o := c.Routing.Order; o != nil {
		c.add(OrderName, func(w io.Writer) error { return writeOrder(w, f, o) })
	}
	if o := c.Routing.CAOrder; o != nil {
		c.add(CAOrderName, func(w io.Writer) error { return dump.WriteCAOrder(w, f, o) })
	}
	if s := c.Routing.SL2VL; s != nil {
		c.addDump(SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, s, opt) })
	}
	p := c.Routing.PathSLs
	if p != nil {
		c.addDump(PathSLsName, func(w io.Writer) error { return dump.WritePathSLs(w, f, p, opt) })
	}
	if c.opt.PairSLs {
		if p == nil {
			p = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		}
		c.addDump(PairSLsName, func(w io.Writer) error { return dump.WriteIBDMPathSLs(w, f, p) })
	}
	if a := c.Adaptive; a != nil {
		c.addDump(FARName, func(w io.Writer) error { return dump.WriteFAR(w, f, a.Tables, opt) })
		c.addDump(AdaptiveName, func(w io.Writer) error { return writeAdaptive(w, f, a.Tables, c.opt.Only) })
	}
	if cert := c.Certificate(); cert != nil {
		c.add(CertificateName, func(w io.Writer) error {
			_, err := w.Write(cert.Append(nil))
			return err
		})
	}
}

func (c *contents) dumpOptions() dump.WriteOptions {
	return dump.WriteOptions{Lean: c.opt.Lean, Only: c.opt.Only}
}

// addGroups adds the multicast tables and groups, if there are any.
func (c *contents) addGroups() {
	f, p, opt := c.Routing.Fabric, c.Plan, c.dumpOptions()
	if p == nil {
		return
	}
	c.addDump(MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, p.Tables, opt) })
	c.addDump(MFTsName, func(w io.Writer) error { return dump.WriteMFTs(w, p.Tables, opt, 0) })
	c.add(GroupsName, func(w io.Writer) error {
		b, err := mft.AppendGroupsJSON(nil, f, p.Trees)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
	c.add(PartitionsName, func(w io.Writer) error { return dump.WritePartitions(w, f, p.Trees) })
}

// writeOrder writes the GUIDs of the switches, the top of the order first. Errors are those
// of lft.SwitchesByRank and w.
func writeOrder(w io.Writer, f *fabric.Fabric, rank []int32) error {
	list, err := lft.SwitchesByRank(f, rank)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	for _, s := range list {
		n := f.Node(s)
		fmt.Fprintf(b, "%s # %q\n", n.GUID, n.Description)
	}
	return b.Flush()
}

// manifestOptions returns opt.Options together with the other fields of opt, by flag name.
func (opt *Options) manifestOptions(f *fabric.Fabric) map[string]any {
	m := maps.Clone(opt.Options)
	if m == nil {
		m = map[string]any{}
	}
	m["install-dir"] = opt.InstallDir
	m["lean"] = opt.Lean
	m["path-sl"] = opt.PairSLs
	if opt.Labels {
		m["labels"] = true
	}
	if opt.Zstd {
		m["zstd"] = true
	}
	if opt.Only != nil {
		only := text.Each(opt.Only, func(s fabric.NodeID) fabric.GUID { return f.Node(s).GUID })
		slices.Sort(only)
		m["only"] = slices.Compact(only)
	}
	return m
}
