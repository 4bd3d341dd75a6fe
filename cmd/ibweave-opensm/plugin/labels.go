package plugin

import (
	"cmp"
	"fmt"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// nodeLabels has the labels printed beside the ports of switches and hosts, by node GUID. OpenSM
// does not know them; a topology text with labels does.
type nodeLabels map[fabric.GUID]fabric.PortLabels

func readLabels(name string) (nodeLabels, error) {
	data, err := readFile(name, maxLabels, labelsTimes)
	if err != nil {
		return nil, err
	}
	f, _, err := topology.Parse(name, data, topology.Options{})
	if err != nil {
		return nil, err
	}
	labels := nodeLabels{}
	for n := range fabric.NodeID(f.NumNodes()) {
		if list := f.PortLabels(n); list != nil {
			labels[f.Node(n).GUID] = list
		}
	}
	return labels, nil
}

// openLabels reads the file of labels that the configuration names. Labels
// are only for people: an error goes to both logs and stops nothing.
func (p *Plugin) openLabels() {
	name := p.config.Labels
	if name == "" {
		return
	}
	in := background[nodeLabels]{file: name}
	failed := p.guard("", func() (err error) {
		p.labels, err = in.get(startTimeout, func() (nodeLabels, error) { return readLabels(name) })
		return err
	})
	if failed != nil {
		p.report(&Error{Code: cmp.Or(failed.Code, BadConfig), Err: fmt.Errorf("labels: %w; ports are named without labels", failed.Err)})
		return
	}
	p.log.Info("labels", zap.String("file", name), zap.Int("nodes", len(p.labels)))
}
