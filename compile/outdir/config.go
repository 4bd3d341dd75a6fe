package outdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// installed returns the path of a file of the directory after installation.
func (c *contents) installed(name string) string { return filepath.Join(c.opt.InstallDir, name) }

// QoSOptions returns the lines of opensm.conf from which OpenSM makes the SL-to-VL tables,
// none if all traffic may use one VL. The error is the reason why OpenSM needs the plugin
// to load this routing as it was verified.
func QoSOptions(r *compile.Result) ([]string, error) {
	if r.Plan != nil {
		return nil, errors.New("OpenSM's file engine loads no multicast tables")
	}
	if r.Routing.SL2VL == nil {
		return nil, nil
	}
	if r.Routing.PathSLs != nil && !r.AnySL {
		return nil, errors.New("OpenSM's file engine gives all paths the same SL, and this routing needs its own")
	}
	return dump.QoSOptions(r.Routing.SL2VL)
}

// lmcOptions returns the values of OpenSM's options lmc and lmc_esp0.
func (c *contents) lmcOptions() (lmc uint8, esp0 string) {
	f := c.Routing.Fabric
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

// configHead begins a file of lines for opensm.conf. It starts with an empty line, since
// the site's file may lack its last line end.
const configHead = `
# %s
# These lines are added to opensm.conf, whose other options stay: of an option that comes
# twice OpenSM takes the last line. LIDs come from %s:
# stop OpenSM and copy it to OpenSM's cache directory, /var/cache/opensm or OSM_CACHE_DIR.
`

// writeConfig writes lines for opensm.conf: OpenSM's file engine then loads the tables from
// InstallDir.
//
// no_fallback keeps OpenSM from routing by minhop when it cannot load them. No option names
// the file of LIDs: at its start OpenSM reads guid2lid in its cache directory
// (OSM_CACHE_DIR, else /var/cache/opensm). With honor_guid2lid_file it keeps these LIDs
// also when it takes over as a standby. qos has the lines that make the SL-to-VL tables.
func (c *contents) writeConfig(w io.Writer, qos []string) error {
	lmc, esp0 := c.lmcOptions()
	_, err := fmt.Fprintf(w, configHead+`# The tables are static: when a cable fails, pairs that used it stay unreachable until
# the fabric is compiled again. With the lines of %s instead OpenSM
# routes by the plugin, and again whenever the fabric changes.
routing_engine file,no_fallback
lfts_file %s
lid_matrix_dump_file %s
honor_guid2lid_file TRUE
lmc %d
lmc_esp0 %s
%s`, "Makes OpenSM's file engine load the tables that ibweave's "+c.Routing.Engine+" made.", c.installed(GUID2LIDName),
		PluginOpenSMName, c.installed(LFTsName), c.installed(LIDMatrixName), lmc, esp0, strings.Join(append(qos, ""), "\n"))
	return err
}

// PluginConfig returns the YAML configuration with which the plugin makes the same tables
// as a compiled directory. options are those of its manifest; groups is the path of its
// groups.json (the senders of each MGID), "" for none.
func PluginConfig(options map[string]any, groups string) ([]byte, error) {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(options)) {
		// JSON is YAML, except for GUIDs in quotes and sizes in a list.
		text, err := json.Marshal(options[key])
		if err != nil {
			return nil, err
		}
		switch key {
		case "roots", "origin", "no-wrap", "repair", "vls", "sl2vl":
			if string(text) != "[]" {
				b = fmt.Appendf(b, "%s: %s\n", key, text)
			}
		case "dims":
			b = fmt.Appendf(b, "%s: %s\n", key, strings.ReplaceAll(strings.Trim(string(text), "[]"), ",", "x"))
		}
	}
	if groups != "" {
		balance, _ := options["mcast-balance"].(bool)
		b = fmt.Appendf(b, "multicast: {balance: %t, groups: %q}\n", balance, groups)
	}
	return b, nil
}

// writePluginConfig writes the configuration of the plugin.
func (c *contents) writePluginConfig(w io.Writer) error {
	groups := ""
	if c.Plan != nil {
		groups = c.installed(GroupsName)
	}
	b, err := PluginConfig(c.options, groups)
	if err != nil {
		return err
	}
	if c.opt.Labels && c.Routing.Fabric.Labelled() {
		b = fmt.Appendf(b, "labels: %q\n", c.installed(TopologyName))
	}
	_, err = fmt.Fprintf(w, "# How OpenSM's plugin makes what ibweave's %s made.\n%s", c.Routing.Engine, b)
	return err
}

// writePluginOpenSM writes the lines of opensm.conf that make OpenSM route by the plugin.
func (c *contents) writePluginOpenSM(w io.Writer) error {
	lmc, esp0 := c.lmcOptions()
	more := ""
	if c.Routing.SL2VL != nil || c.Plan != nil && slices.ContainsFunc(c.Plan.Trees, func(t mft.Tree) bool { return t.SL != 0 }) {
		more += "qos TRUE\n" // packets need VLs that OpenSM sets up only then
	}
	if c.Plan != nil {
		more += "# The groups are created by the lines of " + c.installed(PartitionsName) + ";\n" +
			"# add them to the site's partition_config_file.\n"
	}
	_, err := fmt.Fprintf(w, configHead+`# Of routing_engine OpenSM takes the second when the first cannot route; no_fallback in
# its place leaves the switches as they are. Where the site has another event plugin,
# name both in one line, separated by a comma.
event_plugin_name ibweave-opensm
event_plugin_options --config %s
routing_engine ibweave-%s,updn
honor_guid2lid_file TRUE
lmc %d
lmc_esp0 %s
%s`, "Makes OpenSM route by the plugin libibweave-opensm.so, with the engine "+c.Engine.Name()+".", c.installed(GUID2LIDName), c.installed(PluginConfigName), c.Engine.Name(), lmc, esp0, more)
	return err
}
