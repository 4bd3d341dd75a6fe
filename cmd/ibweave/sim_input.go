package main

import (
	"bytes"
	"strings"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sim"
)

// ranks has the flags that set which hosts take part, and in which order.
type ranks struct {
	hosts string // names, "" for all
	file  string // with names, "" for none
	order sim.RankOrder
}

// findRanks lists the ports that take part in the order of their ranks.
func (a *app) findRanks(in *simulation, f *fabric.Fabric) (list []fabric.PortID, err error) {
	ranks := experiment.NewRanks(f)
	switch {
	case in.ranks.file != "":
		if err = a.readRanks(in, ranks.Add); err == nil && len(ranks.Ports) == 0 {
			err = inputf("%s names no host", in.ranks.file)
		}
	case in.ranks.hosts != "":
		if err = ranks.Add(in.ranks.hosts); err != nil {
			err = wrong("hosts", "%w", err)
		}
	default:
		ranks.AddAll()
	}
	in.ranks.order(f, ranks.Ports)
	return ranks.Ports, err
}

// readRanks reads names of hosts, lists of them on each line, and adds them.
func (a *app) readRanks(in *simulation, add func(hosts string) error) error {
	data, err := a.reader(&in.audit).ReadFile(in.ranks.file)
	if err != nil {
		return err
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		said := strings.TrimRight(string(line), "\r\n")
		hosts, _, _ := strings.Cut(said, "#")
		if hosts = strings.TrimSpace(hosts); hosts == "" {
			continue
		}
		if err := add(hosts); err != nil {
			return &fabric.ParseError{File: in.ranks.file, Line: number, Text: said, Err: err}
		}
	}
	return nil
}
