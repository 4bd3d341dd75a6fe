package compile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// The files of a compiled directory, by the names that OpenSM has for them
// where it has them.
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
	ConfigName      = "opensm.conf"
	// OrderName has the order of the switches that an up*/down* engine used, for
	// --previous; compile --roots takes it too.
	OrderName = "switch-order"
	// CAOrderName has the hosts in the order in which shift permutations of them are free of
	// contention, in the form in which OpenSM's ftree writes it.
	CAOrderName = "opensm-ftree-ca-order.dump"
	// The plugin's configuration, and one that makes OpenSM use the plugin.
	PluginConfigName = "ibweave.yaml"
	PluginOpenSMName = "opensm-plugin.conf"
)

// ZstdSuffix is what the name of a compressed dump ends with.
const ZstdSuffix = ".zst"

// WriteOptions are what a caller may ask of Result.Write.
type WriteOptions struct {
	Version string         // of ibweave, for the manifest
	Options map[string]any // for the manifest: what else made the result
	// Previous is the SHA-256 of the manifest whose tables were kept, "" for none.
	Previous string
	// InstallDir is the absolute path that opensm.conf gives the files.
	InstallDir string
	// Lean leaves the comments out of dumps.
	Lean bool
	// Zstd compresses the dumps of tables, whose names then end in ZstdSuffix.
	// OpenSM wants them unpacked.
	Zstd bool
	// PairSLs writes the path SLs a second time, a line for each pair, as
	// ibdmchk reads them.
	PairSLs bool
	// Force writes an opensm.conf for OpenSM's file engine even when that
	// cannot bring in all that the proof needs.
	Force bool
	// Only restricts tables to these switches; nil means all. There is no
	// opensm.conf then, since OpenSM would leave the other switches without
	// tables.
	Only []fabric.NodeID
}

// Write makes dir of a result, all at once (see writeDirectory), and returns
// the names of its files. It writes whatever Result.Verify says: that is for
// the caller to read first.
func (r *Result) Write(ctx context.Context, dir string, opt WriteOptions) ([]string, error) {
	if !filepath.IsAbs(opt.InstallDir) {
		return nil, fmt.Errorf("%s is no absolute path, as opensm.conf needs", opt.InstallDir)
	}
	if strings.ContainsAny(opt.InstallDir, " \t\n\r#\"") {
		return nil, fmt.Errorf("%q: OpenSM reads no blanks, quotes or # in the names of files", opt.InstallDir)
	}
	m := Manifest{Version: opt.Version, Engine: r.Routing.Engine, Options: opt.manifestOptions(r.Routing.Fabric), Previous: opt.Previous}
	files := r.files(opt, m.Options)
	if err := writeDirectory(ctx, dir, files, m); err != nil {
		return nil, err
	}
	names := []string{ManifestName}
	for _, f := range files {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names, nil
}

// files is what a result consists of. options are those of the manifest.
func (r *Result) files(opt WriteOptions, options map[string]any) []file {
	f, t := r.Routing.Fabric, r.Routing.Tables
	tables := dump.WriteOptions{Lean: opt.Lean, Only: opt.Only}
	files := []file{
		opt.dump(LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, t, tables) }),
		opt.dump(LIDMatrixName, func(w io.Writer) error { return dump.WriteLIDMatrix(w, f, t, tables) }),
		opt.dump(FDBsName, func(w io.Writer) error { return dump.WriteFDBs(w, f, t, tables) }),
		{GUID2LIDName, func(w io.Writer) error { return dump.WriteGUID2LID(w, f) }},
		{SubnetListName, func(w io.Writer) error { return dump.WriteSubnetList(w, f, dump.SubnetListOptions{}) }},
		{TopologyName, func(w io.Writer) error { return topology.Write(w, f) }},
	}
	if o := r.Routing.Order; o != nil {
		files = append(files, file{OrderName, func(w io.Writer) error { return writeOrder(w, f, o) }})
	}
	if o := r.Routing.CAOrder; o != nil {
		files = append(files, file{CAOrderName, func(w io.Writer) error { return dump.WriteCAOrder(w, f, o) }})
	}
	if s := r.Routing.SL2VL; s != nil {
		files = append(files, opt.dump(SL2VLName, func(w io.Writer) error { return dump.WriteSL2VL(w, s, tables) }))
	}
	if p := r.Routing.PathSLs; p != nil {
		files = append(files, opt.dump(PathSLsName, func(w io.Writer) error { return dump.WritePathSLs(w, f, p, tables) }))
	}
	if opt.PairSLs {
		p := r.Routing.PathSLs
		if p == nil {
			p = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		}
		files = append(files, opt.dump(PairSLsName, func(w io.Writer) error { return dump.WriteIBDMPathSLs(w, f, p) }))
	}
	if p := r.Plan; p != nil {
		files = append(files,
			opt.dump(MCFDBsName, func(w io.Writer) error { return dump.WriteMCFDBs(w, p.Tables, tables) }),
			opt.dump(MFTsName, func(w io.Writer) error { return dump.WriteMFTs(w, p.Tables, tables, 0) }),
			file{GroupsName, func(w io.Writer) error {
				b, err := mft.AppendGroupsJSON(nil, f, p.Trees)
				if err == nil {
					_, err = w.Write(b)
				}
				return err
			}},
			file{PartitionsName, func(w io.Writer) error { return dump.WritePartitions(w, f, p.Trees, dump.GroupOptions{}) }})
	}
	if c := r.Verify.Certificate(); c != nil {
		files = append(files, file{CertificateName, func(w io.Writer) error {
			_, err := c.WriteTo(w)
			return err
		}})
	}
	if opt.Only != nil {
		return files
	}
	qos, err := r.QoSOptions()
	if err == nil || opt.Force {
		files = append(files, file{ConfigName, func(w io.Writer) error { return r.writeConfig(w, opt, qos) }})
	}
	return append(files, r.pluginFiles(opt, options)...)
}

// dump is a file with tables, which is compressed when that is wanted.
func (opt *WriteOptions) dump(name string, write func(io.Writer) error) file {
	if !opt.Zstd {
		return file{name, write}
	}
	return file{name + ZstdSuffix, func(w io.Writer) error { return dump.WriteZstd(w, write) }}
}

// writeOrder writes the GUIDs of the switches, the top first.
func writeOrder(w io.Writer, f *fabric.Fabric, rank []int32) error {
	at := make([]fabric.NodeID, len(rank))
	for s, r := range rank {
		at[r] = fabric.NodeID(s)
	}
	b := bufio.NewWriter(w)
	for _, s := range at {
		n := f.Node(s)
		fmt.Fprintf(b, "%s # %q\n", n.GUID, n.Description)
	}
	return b.Flush()
}

// lmcOptions are the values of OpenSM's options lmc and lmc_esp0.
func (r *Result) lmcOptions() (lmc uint8, esp0 string) {
	f := r.Routing.Fabric
	esp0 = "FALSE"
	f.EndPorts(func(p fabric.PortID) {
		l := f.LMC(p)
		lmc = max(lmc, l)
		if l > 0 && f.IsSwitch(f.Owner(p)) {
			esp0 = "TRUE"
		}
	})
	return lmc, esp0
}

// configHead begins a file of lines for opensm.conf. A comment comes first, so that the
// last line of a file without an end is not continued by an option.
const configHead = `# %s
# These lines are added to opensm.conf, whose other options stay: of an option that comes
# twice OpenSM takes the last line. LIDs come from %s:
# stop OpenSM and copy it to OpenSM's cache directory, /var/cache/opensm or OSM_CACHE_DIR.
`

// writeConfig writes the lines of opensm.conf that make OpenSM's file engine load the
// tables from InstallDir.
//
// no_fallback keeps OpenSM from routing by minhop when it cannot load them.
// LIDs come from guid2lid in OpenSM's cache directory (OSM_CACHE_DIR, else
// /var/cache/opensm), for which there is no option. OpenSM reads it when it
// starts; honor_guid2lid_file has it keep those LIDs when it takes over as a
// standby, too. qos is the lines that make the SL-to-VL tables.
func (r *Result) writeConfig(w io.Writer, opt WriteOptions, qos []string) error {
	lmc, esp0 := r.lmcOptions()
	at := func(name string) string { return filepath.Join(opt.InstallDir, name) }
	_, err := fmt.Fprintf(w, configHead+`# The tables are static: when a cable fails, pairs that used it stay unreachable until
# the fabric is compiled again. With the lines of %s instead OpenSM
# routes by the plugin, and again whenever the fabric changes.
routing_engine file,no_fallback
lfts_file %s
lid_matrix_dump_file %s
honor_guid2lid_file TRUE
lmc %d
lmc_esp0 %s
%s`, "Makes OpenSM's file engine load the tables that ibweave's "+r.Routing.Engine+" made.", at(GUID2LIDName),
		PluginOpenSMName, at(LFTsName), at(LIDMatrixName), lmc, esp0, strings.Join(append(qos, ""), "\n"))
	return err
}

// InstallCommands are the shell commands that copy a compiled directory with these files
// to where its configurations expect it, and add lines to the site's opensm.conf, which
// keeps its other options: those of the plugin, and those of the static files. Either is
// nil where the directory lacks that configuration.
func InstallCommands(dir string, files []string, opt WriteOptions) (plugin, static []string) {
	quote := func(s string) string {
		if s != "" && !strings.ContainsFunc(s, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./+,:@%", c))
		}) {
			return s
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	commands := []string{"systemctl stop opensm"} // which reads guid2lid when it starts
	if abs, err := filepath.Abs(dir); err != nil || abs != filepath.Clean(opt.InstallDir) {
		commands = append(commands,
			"mkdir -p "+quote(opt.InstallDir),
			"cp "+quote(dir)+"/* "+quote(opt.InstallDir)+"/")
	}
	if opt.Zstd {
		commands = append(commands, "zstd -d -q -f --rm "+quote(opt.InstallDir)+"/*"+ZstdSuffix)
	}
	commands = append(commands, "cp "+quote(filepath.Join(opt.InstallDir, GUID2LIDName))+" /var/cache/opensm/guid2lid")
	with := func(config string) []string {
		if !slices.Contains(files, config) {
			return nil
		}
		return append(slices.Clone(commands),
			"cat "+quote(filepath.Join(opt.InstallDir, config))+" >>/etc/opensm/opensm.conf",
			"systemctl start opensm")
	}
	return with(PluginOpenSMName), with(ConfigName)
}

// manifestOptions adds what WriteOptions decide to the other options.
func (opt *WriteOptions) manifestOptions(f *fabric.Fabric) map[string]any {
	m := maps.Clone(opt.Options)
	if m == nil {
		m = map[string]any{}
	}
	m["install-dir"] = opt.InstallDir
	m["lean"] = opt.Lean
	m["path-sl"] = opt.PairSLs
	if opt.Zstd {
		m["zstd"] = true
	}
	if opt.Only != nil {
		only := []fabric.GUID{}
		for _, s := range opt.Only {
			only = append(only, f.Node(s).GUID)
		}
		slices.Sort(only)
		m["only"] = slices.Compact(only)
	}
	return m
}
