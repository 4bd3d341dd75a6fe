package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/umad"
)

// devicePort is a port in JSON.
type devicePort struct {
	Device    string         `json:"device"`
	Port      fabric.PortNum `json:"port"`
	GUID      fabric.GUID    `json:"port_guid"`
	LID       fabric.LID     `json:"lid"`
	LMC       uint8          `json:"lmc"`
	SMLID     fabric.LID     `json:"sm_lid"`
	State     string         `json:"state"`
	LinkLayer string         `json:"link_layer"`
	Rate      string         `json:"rate"`
	Umad      string         `json:"umad"`
	Netdevs   []string       `json:"netdevs"`
}

func (a *app) devicesCommand() *cobra.Command {
	var form outputForm
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "list the RDMA ports of this machine",
		Long: `List the ports of this machine's RDMA devices: by what --umad can name them, and
whether subnet management can be spoken there (an InfiniBand link layer and a
umad device). The exit status is 4 when there is none.`,
		Example: `  ibweave devices
  ibweave devices --format json`,
		Args: a.noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := umad.List()
			if err != nil {
				return err
			}
			return form.print(a.stdout, deviceDocument(list), func(b *facts) { deviceTable(b, list) })
		},
	}
	form.define(cmd.Flags(), "`FORM` of the output: text or json")
	return cmd
}

// deviceDocument is the ports in JSON.
func deviceDocument(list []umad.PortInfo) map[string]any {
	ports := make([]devicePort, len(list))
	for i, p := range list {
		ports[i] = devicePort{p.Device, p.Number, p.GUID, p.LID, p.LMC, p.SMLID, p.State, p.LinkLayer, p.Rate, p.Umad, append([]string{}, p.Netdevs...)}
	}
	return map[string]any{"ports": ports}
}

// deviceTable prints ports for people.
func deviceTable(b *facts, list []umad.PortInfo) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PORT\tGUID\tLID\tSM LID\tSTATE\tLINK\tRATE\tUMAD\tNETDEV")
	or := func(s string) string { return cmp.Or(s, "-") }
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", p, p.GUID, p.LID, p.SMLID, or(p.State), p.LinkLayer, or(p.Rate), or(p.Umad), or(strings.Join(p.Netdevs, ",")))
	}
	_ = w.Flush() // a buffer takes all
}
