package names_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/short"
)

// TestFind asks for nodes as people call them.
func TestFind(t *testing.T) {
	b := &fabric.Builder{}
	descriptions := []string{
		"n001 mlx5_0", "n001 mlx5_1", "n002 HCA-1", "n003 ibp85s0f0", "odd, name", "login",
		"MF0;leaf01:MQM8700/U1", "MF0;dir:MCS8500/L04/U1", "MF0;dir:MCS8500/S01/U1",
	}
	for i, d := range descriptions {
		kind := fabric.CA
		if strings.HasPrefix(d, "MF0") {
			kind = fabric.Switch
		}
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x10 + i), Type: kind, NumPorts: 1, Description: d}))(t)
	}
	f := short.Must(b.Build())(t)
	for _, c := range []struct{ text, want string }{
		{"n001", "n001 mlx5_0; n001 mlx5_1"},
		{"N001", "n001 mlx5_0; n001 mlx5_1"},
		{"n001 mlx5_1", "n001 mlx5_1"},
		{"n[001-003]", "n001 mlx5_0; n001 mlx5_1; n002 HCA-1; n003 ibp85s0f0"},
		{"n003,n[002-003],login", "n003 ibp85s0f0; n002 HCA-1; login"},
		{"odd, name", "odd, name"},
		{"0x0000000000000012", "n002 HCA-1"},
		{"leaf01", "MF0;leaf01:MQM8700/U1"},
		{"dir", "MF0;dir:MCS8500/L04/U1; MF0;dir:MCS8500/S01/U1"},
		{"MF0;le..M8700/U1", "MF0;leaf01:MQM8700/U1"},
		{"n003,mf0;..:MCS8500/l04/U1", "n003 ibp85s0f0; MF0;dir:MCS8500/L04/U1"},
		{"MF0;d..:MCS8500/L04/U1", `no node is called "MF0;d..:MCS8500/L04/U1"; "mf0;dir:mcs8500/l04/u1" is one`},
		{"MF0;..U1", `3 nodes have names like "MF0;..U1": "MF0;leaf01:MQM8700/U1", "MF0;dir:MCS8500/L04/U1", "MF0;dir:MCS8500/S01/U1"`},
		{"n0..3 ibp85s0f0", `no node is called "n0..3 ibp85s0f0"; "n003 ibp85s0f0" is one`},
		{"n004", `no node is called "n004"; "n001" is one`},
		{"tree", `no node is called "tree"; want a GUID, a name, or a list of names like n[1-4,7]`},
		{"n[001-", `"n[001-": want brackets like [1-4,7]`},
		{"n[5-1]", `"n[5-1]": range "5-1": want numbers like 7 or 1-4, and at most 1048576 names`},
		{"0x0000000000000099", `no node is called "0x0000000000000099"; want a GUID, a name, or a list of names like n[1-4,7]`},
	} {
		nodes, err := names.Find(f, c.text)
		var list []string
		for _, n := range nodes {
			list = append(list, f.Node(n).Description)
		}
		got := strings.Join(list, "; ")
		if err != nil {
			got = fmt.Sprint(err)
		}
		short.Equal(t, got, c.want, c.text)
	}
}

// TestHosts asks for hosts in an order, by descriptions and by names of a map.
func TestHosts(t *testing.T) {
	b := &fabric.Builder{}
	for i, d := range []string{"n1 mlx5_10", "n1 mlx5_2", "n[2], old", "MT4123", "MF0;leaf01:MQM8700/U1"} {
		kind := fabric.CA
		if strings.HasPrefix(d, "MF0") {
			kind = fabric.Switch
		}
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x10 + i), Type: kind, NumPorts: 1, Description: d}))(t)
	}
	f := short.Must(b.Build())(t)
	f = f.WithNames(map[fabric.GUID]string{0x13: "n3 mlx5_0"})
	for list, want := range map[string]string{
		"n3,N1":     "n3: n3 mlx5_0; N1: n1 mlx5_2, n1 mlx5_10; ",
		"n[1,3]":    "n1: n1 mlx5_2, n1 mlx5_10; n3: n3 mlx5_0; ",
		"n[2], old": "n[2], old: n[2], old; ",
		"n1,leaf01": `"MF0;leaf01:MQM8700/U1" is a switch: want hosts`,
		"n1,n9":     `no node is called "n9"; "n1" is one`,
		" , ":       "no host; want names, like n[001-016]",
	} {
		hosts, err := names.NewFinder(f).Hosts(list)
		got := ""
		for _, h := range hosts {
			var nodes []string
			for _, n := range h.Nodes {
				nodes = append(nodes, f.Name(n).Text)
			}
			got += h.Name + ": " + strings.Join(nodes, ", ") + "; "
		}
		if err != nil {
			got = err.Error()
		}
		short.Equal(t, got, want, list)
	}
}

// TestSplit has descriptions of adapters by each kind of pattern.
func TestSplit(t *testing.T) {
	for _, c := range []struct{ description, pattern, host, adapter string }{
		{"n001 mlx5_0", "", "n001", "mlx5_0"},
		{"n0;01 HCA-2", "", "n0-01", "HCA-2"},
		{"login", "", "login", ""},
		{"su0-dgx00-mlx3", "", "su0-dgx00", "mlx3"},
		{"n17_mlx5_0", "", "n17", "mlx5_0"},
		{"mlx5_0", "", "mlx5_0", ""},
		{"MT4129 ConnectX7   Mellanox Technologies", "", "", ""},
		{"su0-dgx00-mlx3", `^(.*)-mlx`, "su0-dgx00", "mlx3"},
		{"A-n00-07", `^(?P<adapter>.)-(?P<host>.*)$`, "n00-07", "A"},
		{"A-n00-07", `^.-(.*)$`, "n00-07", "A"},
		{"host 7", ".*", "host-7", ""},
		{"n1", `^(a)?n`, "", ""},
		{"n1", `^(?P<adapter>x)?(n1)`, "", ""},
		{"n1", `^(?P<adapter>x)?(?P<host>n1)`, "n1", ""},
		{"spare", `^n\d`, "", ""},
	} {
		var pattern *regexp.Regexp
		if c.pattern != "" {
			pattern = regexp.MustCompile(c.pattern)
		}
		if host, adapter := names.Split(c.description, pattern); host != c.host || adapter != c.adapter {
			t.Errorf("%q by %q: %q, %q, want %q, %q", c.description, c.pattern, host, adapter, c.host, c.adapter)
		}
	}
}

// TestPorts finds ports by number and label.
func TestPorts(t *testing.T) {
	var b fabric.Builder
	for i, name := range []string{"MF0;leaf01:MQM9700/U1", "n001 mlx5_0", "n001 mlx5_1"} {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(1 + i), Type: []fabric.NodeType{fabric.Switch, fabric.CA, fabric.CA}[i], NumPorts: 3, Description: name}))(t)
	}
	short.Check(t, b.SetLabel(0, 2, "1/1/2"))
	f := short.Must(b.Build())(t)
	for text, want := range map[string]string{
		"leaf01:3": `"MF0;leaf01:MQM9700/U1"[3]`, "leaf01:1/1/2": `"MF0;leaf01:MQM9700/U1"[2](1/1/2)`, "n001 mlx5_1:1": `"n001 mlx5_1"[1]`,
		"leaf01:4": `"MF0;leaf01:MQM9700/U1" has ports 1 to 3`, "leaf01:": `"MF0;leaf01:MQM9700/U1" has ports 1 to 3`, "leaf01:0": `"MF0;leaf01:MQM9700/U1" has ports 1 to 3`,
		"leaf01": "want NODE:PORT, like leaf03:37", "n001:1": `2 nodes are called "n001"; want one, or its GUID`, "n002:1": `no node is called "n002"; "n001" is one`,
	} {
		p, err := names.NewFinder(f).Port(text)
		got := fmt.Sprint(err)
		if err == nil {
			got = f.PortName(p)
		}
		short.Equal(t, got, want, text)
	}
}

// A text without a name is an error, and not no nodes.
func TestFindNoName(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	for _, text := range []string{"", ",", " ", " , "} {
		if nodes, err := names.Find(f, text); err == nil {
			t.Errorf("%q: %d nodes and no error", text, len(nodes))
		}
	}
	if _, err := names.NewFinder(f).Port("h[1-1048576]:1"); err == nil {
		t.Error("a list is taken for one node")
	}
}
