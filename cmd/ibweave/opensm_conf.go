package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// siteOptions are the routing options of an opensm.conf.
type siteOptions struct {
	lines []string
	files map[string][]byte // contents by option
	lmc   int               // lft.KeepLMC if none is given
}

// routingOptions are options of OpenSM that change routes, besides
// lmc and qos_*; routingFiles those whose value is a file.
var (
	routingOptions = []string{"connect_roots", "max_reverse_hops", "scatter_ports", "port_shifting", "remote_guid_sorting", "guid_routing_order_no_scatter",
		"port_profile_switch_nodes", "do_mesh_analysis", "lash_start_vl", "nue_max_num_vls", "nue_include_switches", "max_op_vls", "avoid_throttled_links"}
	routingFiles = []string{"root_guid_file", "cn_guid_file", "io_guid_file", "ids_guid_file", "guid_routing_order_file", "hop_weights_file",
		"dimn_ports_file", "port_search_ordering_file", "torus_config"}
)

// maxOpenSMConf is the most bytes of an opensm.conf, or of a file that it names.
const maxOpenSMConf = 64 << 20

// readSiteOptions reads the routing options of an opensm.conf, with the files
// that they name, relative to its folder. The name "" means no options.
func (a *app) readSiteOptions(name string) (*siteOptions, error) {
	x := &siteOptions{files: map[string][]byte{}, lmc: lft.KeepLMC}
	if name == "" {
		return x, nil
	}
	data, err := a.readInput(name)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(data), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || fields[1] == "(null)" {
			continue
		}
		wrong := func(err error) error { return &fabric.ParseError{File: name, Line: i + 1, Text: line, Err: err} }
		switch option, value := fields[0], fields[1]; {
		case option == "lmc":
			if x.lmc, err = strconv.Atoi(value); err != nil || x.lmc < 0 || x.lmc > 7 {
				return nil, wrong(errors.New("want an LMC of 0 to 7"))
			}
		case slices.Contains(routingFiles, option):
			if !filepath.IsAbs(value) {
				value = filepath.Join(filepath.Dir(name), value)
			}
			if x.files[option], err = files.ReadRegular(value, maxOpenSMConf); err != nil {
				return nil, wrong(err)
			}
		case option == "qos_policy_file":
			fmt.Fprintf(a.stderr, "%s:%d: %s has no effect: engines are compared without policies of QoS\n", name, i+1, option)
		case slices.Contains(routingOptions, option), strings.HasPrefix(option, "qos_"):
			x.lines = append(x.lines, strings.TrimSpace(line))
		}
	}
	return x, nil
}

// guid matches a GUID in a file of OpenSM.
var guid = regexp.MustCompile(`0[xX][0-9a-fA-F]+`)

// apply adds the options to cfg. In files it replaces the GUIDs of ports by those on ibsim.
func (x *siteOptions) apply(cfg *ibsim.OpenSMConfig, twin *ibsim.Twin) {
	cfg.Options = append(cfg.Options, x.lines...)
	cfg.Files = map[string][]byte{}
	for option, text := range x.files {
		cfg.Files[option] = guid.ReplaceAllFunc(bytes.Clone(text), func(word []byte) []byte {
			g, err := fabric.ParseGUID(string(word))
			if err != nil || !twin.Has(g) {
				return word
			}
			return fmt.Appendf(nil, "%#x", uint64(twin.PortGUID(g)))
		})
	}
}
