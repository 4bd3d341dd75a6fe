package compile

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// PluginConfig is the YAML configuration by which OpenSM's plugin makes what a
// compiled directory has: the options of its manifest, and, unless it is "", the
// name of its groups.json, which says who sends to an MGID.
func PluginConfig(options map[string]any, groups string) ([]byte, error) {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(options)) {
		// JSON is YAML, but for GUIDs in quotes and sizes in a list.
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

// pluginFiles are the two files that make OpenSM route by the plugin: its own
// configuration, and the plugin's.
func (r *Result) pluginFiles(opt WriteOptions, options map[string]any) []file {
	at := func(name string) string { return filepath.Join(opt.InstallDir, name) }
	return []file{
		{PluginConfigName, func(w io.Writer) error {
			groups := ""
			if r.Plan != nil {
				groups = at(GroupsName)
			}
			b, err := PluginConfig(options, groups)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, "# How OpenSM's plugin makes what ibweave's %s made.\n%s", r.Routing.Engine, b)
			return err
		}},
		{PluginOpenSMName, func(w io.Writer) error {
			lmc, esp0 := r.lmcOptions()
			more := ""
			if r.needsQoS() {
				more += "qos TRUE\n"
			}
			if r.Plan != nil {
				more += "# The groups are created by the lines of " + at(PartitionsName) + ";\n" +
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
%s`, "Makes OpenSM route by the plugin libibweave-opensm.so, with the engine "+r.Engine.Name()+".", at(GUID2LIDName), at(PluginConfigName), r.Engine.Name(), lmc, esp0, more)
			return err
		}},
	}
}

// needsQoS says whether packets need VLs that only an OpenSM with qos TRUE sets up.
func (r *Result) needsQoS() bool {
	if r.Routing.SL2VL != nil {
		return true
	}
	if r.Plan != nil {
		for i := range r.Plan.Trees {
			if r.Plan.Trees[i].SL != 0 {
				return true
			}
		}
	}
	return false
}
