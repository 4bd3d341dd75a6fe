package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// Rows of every form give the same cables.
func TestParse(t *testing.T) {
	want := []string{"LEAF1/21 - DIR1/Blade 16_Port 2/20", "node1/node1 ibp11s0f0 - LEAF1/1"}
	for name, text := range map[string]string{
		"short NDT":       "#StartDevice,StartPort,EndDevice,EndPort,LinkType\nLEAF1,Port 21,DIR1,Blade 16_Port 2/20,Data\nnode1,node1 ibp11s0f0,LEAF1,Port 1, Data\n",
		"CR, BOM, quotes": "\ufeff#StartDevice,StartPort,EndDevice,EndPort,LinkType\r\n\"LEAF1\",Port 21,DIR1,Blade 16_Port 2/20,Data\r\n\r\nnode1,node1 ibp11s0f0,LEAF1,Port 1,Data\r\n",
		"long NDT": ",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height,LinkType,Speed,,Cable Length,,,\n" +
			",Rack A #1,U41,LEAF1,Port 21,R1,DIR1,Blade 16_Port 2/20,R2,U25,Data,200000,200G cable,10,,,Rack A #1\n,Rack A #1,U1,node1,node1 ibp11s0f0,R1,LEAF1,Port 1,R1,U41,Data,200000,,2,,,\n,,,,,,,,,,,,,,,a remark,R7\n",
		"states":               "rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height_1,LinkType,Speed,_2,Cable Length,_3,_4,_5,_6,_7,State,Domain\n,,LEAF1,Port 21,,DIR1,Blade 16_Port 2/20,,,,,,,,,,,,Active,In-Scope\n,,node1,node1 ibp11s0f0,,LEAF1,Port 1,,,,,,,,,,,,Active,In-Scope\nLEAF1,Port 7,,,,,,,,,,,,Disabled,Disconnected\n",
		"no header":            "LEAF1,Port 21,DIR1,Blade 16_Port 2/20\nnode1,node1 ibp11s0f0,LEAF1,1\n",
		"header of its own":    "Cabling of hall 3\n\nNode A;Port A;Node B;Port B;Remarks\n# hosts below\nLEAF1;21;DIR1;Blade 16_Port 2/20;\nnode1;node1 ibp11s0f0;LEAF1;1;new\n",
		"tabs, another order":  "to\tto port\tfrom\tfrom port\nDIR1\tBlade 16_Port 2/20\tLEAF1\t21\nLEAF1\t1\tnode1\tnode1 ibp11s0f0\n",
		"ports like headers":   "LEAF1,Port 21,DIR1,Blade 16_Port 2/20\nnode1,node1 ibp11s0f0,LEAF1,Port 1\nLEAF1,Port 21,DIR1,Blade 16_Port 2/20\n",
		"German Excel":         "\ufeffStartgerät;Startport;Endgerät;Endport;;\r\nLEAF1;Port 21;DIR1;Blade 16_Port 2/20;;\r\nnode1;node1 ibp11s0f0;LEAF1;Port 1;;\r\n;;;;;\r\n",
		"von, nach":            "Nr;Von Gerät;Von Port;Nach Gerät;Nach Port\n1;LEAF1;21;DIR1;Blade 16_Port 2/20\n2;node1;node1 ibp11s0f0;LEAF1;1\n",
		"merged cells":         "Hall 3\n;From;;;To;\nNr;Device;Port;Length;Device;Port\n1;LEAF1;21;3;DIR1;Blade 16_Port 2/20\n2;node1;node1 ibp11s0f0;3;LEAF1;1\n",
		"Device, Port twice":   "Device,Port,Device,Port\nLEAF1,21,DIR1,Blade 16_Port 2/20\nnode1,node1 ibp11s0f0,LEAF1,1\n",
		"source, target":       "Source Device|Source Interface|Target Device|Target Interface\nLEAF1|21|DIR1|Blade 16_Port 2/20\nnode1|node1 ibp11s0f0|LEAF1|1\n",
		"sep=":                 "sep=;\nLEAF1;21;DIR1;Blade 16_Port 2/20\nnode1;node1 ibp11s0f0;LEAF1;1\n",
		"CR of a Mac":          "A-Side Device,A-Side Port,Z-Side Device,Z-Side Port\rLEAF1,21,DIR1,Blade 16_Port 2/20\rnode1,node1 ibp11s0f0,LEAF1,1\r",
		"columns in any order": "LinkType,EndPort,EndDevice,StartPort,StartDevice\nData,Blade 16_Port 2/20,DIR1,Port 21,LEAF1\nData,Port 1,LEAF1,node1 ibp11s0f0,node1\n",
	} {
		p, err := Parse("f", []byte(text), false)
		if err != nil || len(p.Problems) > 0 {
			t.Errorf("%s: %v %v", name, err, p)
			continue
		}
		var got []string
		for i := range p.Cables {
			if text := p.Cables[i].String(); !slices.Contains(got, text) {
				got = append(got, text)
			}
		}
		short.EqualList(t, got, want, name)
	}
	p := short.Must(Parse("f.topo", []byte("# by hand\nMTS3600 SW-1 CFG: leaf1=R, spine2=R\n   P1 -> MTS3600 SW-2 P19\n\tP2 -4x-10G-> HCA H-1 U2/P1\n\nMCS0000 D1\n L16/U2/P20 -12X-> MQM0000 SW-2 P3\n"), false))(t)
	if got := fmt.Sprint(p.Cables[0].Line, p.Cables[0].Ends, p.Cables[1].Ends, p.Cables[2].Ends); got != "3 [SW-1/P1 SW-2/P19] [SW-1/P2 H-1/U2/P1] [D1/L16/U2/P20 SW-2/P3]" {
		t.Error(got)
	}
}

// What makes no sense is said with its line; lenient leaves it out.
func TestParseErrors(t *testing.T) {
	const head = "#StartDevice,StartPort,EndDevice,EndPort\n"
	for _, c := range []struct{ text, want string }{
		{"", "f: the plan has no cable; want one of UFM's NDT"},
		{head, "f: the plan has no cable"},
		{"#StartDevice,EndDevice,EndPort,LinkType\na,b,Port 1,Data\n", "f:1: the header has no column StartPort; want StartDevice, StartPort, EndDevice and EndPort"},
		{"StartDevice,StartPort,EndPort\na,1,2\n", "f:1: the header has no column EndDevice"},
		{"some garbage\nthat is no plan\n", "f:1: a row of 1 column; want UFM's NDT"},
		{head + "a,1,b,2\na,1,,2\n", `f:3: port "2" of no device`},
		{head + "a,,b,2\n", `f:2: no port of "a"; want one like "Port 21"`},
		{head + strings.Repeat("a", 300) + ",1,b,2\n", "f:2: a name of more than 256 bytes"},
		{"Anlage,Stelle,Gegenstelle,Dort\na,1,b,2\n", "f:1: this is no cable, nor a header with columns StartDevice"},
		{"sep=;\na;1;b;2\nc;3\n", "f:3: a row of 2 columns; want"},
		{"MTS SW-1\n P1 -> MTS SW-2\n", "f:2: want PORT -> SYSTEM-TYPE SYSTEM-NAME PORT"},
		{"# x\n P1 -> MTS SW-2 P1\n", "f:2: a cable of no system"},
		{"MTS SW-1\n P1 -> MTS SW-2 P1\n\nwhat is this\n", "f:4: want SYSTEM-TYPE SYSTEM-NAME"},
	} {
		p, err := Parse("f", []byte(c.text), false)
		if err == nil || p != nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	p, err := Parse("f", []byte(head+"a,1,b,2\na,1,,2\nc,3,d,4\n"), true)
	if err != nil || len(p.Cables) != 2 || len(p.Problems) != 1 || p.Problems[0].Line != 3 {
		t.Errorf("lenient: %v %v", p, err)
	}
}

// Names of ports, as operators write them, find ports of a site.
func TestResolve(t *testing.T) {
	f := site(t, 6, 2)
	b := &binder{f: f, x: newIndex(f), byName: map[string]fabric.NodeID{}, unfilled: map[fabric.NodeID]bool{}}
	guid := ""
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.Node(n).Description == "MF0;leaf-02:MQM0000/U1" {
			guid = f.Node(n).GUID.String()
		}
	}
	for _, c := range []struct{ device, port, want string }{
		{"leaf-02", "Port 3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"LEAF-02", "port 3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"Leaf-02", "P3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "1/2/1", `"MF0;leaf-02:MQM0000/U1"[3]`}, // no labels there: by the rule of Quantum-2
		{"leaf-02", "IB1/3", `"MF0;leaf-02:MQM0000/U1"[3]`}, // MLNX-OS
		{"leaf-02", "IB1/2/1", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "2/1", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "sw2p1", `"MF0;leaf-02:MQM0000/U1"[3]`}, // NVOS
		{"leaf-02", "Port_03", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "Port-3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-02", "3.0", `"MF0;leaf-02:MQM0000/U1"[3]`}, // a number with gaps below, as spreadsheets make it
		{"leaf-02.hpc.example.com", "3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"node3-1.hpc.example.com", "ibp22s0f0", `"Node3-1 ibp22s0f0"[1]`},
		{"node3-1.hpc.example.com", "node3-1.hpc.example.com ibp22s0f0", `"Node3-1 ibp22s0f0"[1]`},
		{"10.1.2.3", "3", "10.1.2.3[3]"},
		{"leaf-01", "IB1/2/2", `"MF0;leaf-01:MQM0000/U1"[4](1/2/2)`},
		{"leaf-01", "sw2p2", `"MF0;leaf-01:MQM0000/U1"[4](1/2/2)`},
		{"leaf-02", "U1/P3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"MF0;leaf-02:MQM0000/U1", "Port 3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{guid, "3", `"MF0;leaf-02:MQM0000/U1"[3]`},
		{"leaf-01", "Port 1/2/2", `"MF0;leaf-01:MQM0000/U1"[4](1/2/2)`},
		{"leaf-01", "4", `"MF0;leaf-01:MQM0000/U1"[4](1/2/2)`},
		{"DIR0", "Blade 02_Port 2/5", `"MF0;Dir0:MCS0000/L02/U2"[5]`},
		{"dir0", "blade 2 port 2/5", `"MF0;Dir0:MCS0000/L02/U2"[5]`},
		{"dir0", "Leaf 2/U2/P5", `"MF0;Dir0:MCS0000/L02/U2"[5]`},
		{"dir0", "L2/U2/5", `"MF0;Dir0:MCS0000/L02/U2"[5]`},
		{"dir0", "S1/U1/2", `"MF0;Dir0:MCS0000/S1/U1"[2]`},
		{"dir0", "S1/P2", `"MF0;Dir0:MCS0000/S1/U1"[2]`},
		{"dir0", "Blade 2_Port 5", `port "Blade 2_Port 5" of "dir0" does not say which of 2 chips; want one like "Blade 02_Port 1/5"`},
		{"dir0", "Port 5", `port "Port 5" of "dir0" does not say which of 8 chips; want one like "S1/U1/5"`},
		{"dir0", "Blade 7_Port 1/5", "dir0/L7/U1[5]"},
		{"NODE3-1", "NODE3-1 ibp22s0f0", `"Node3-1 ibp22s0f0"[1]`},
		{"node3-1", "ibp22s0f0", `"Node3-1 ibp22s0f0"[1]`},
		{"node3-1", "ibp22s0f0/P1", `"Node3-1 ibp22s0f0"[1]`},
		{"node3-1 ibp22s0f0", "Port 1", `"Node3-1 ibp22s0f0"[1]`},
		{"node3-1", "Port 1", `"node3-1" has 2 adapters, and port "Port 1" does not say which; want "Node3-1 ibp11s0f0"`},
		{"storage3", "Port 2", `"storage3 mlx5_0"[2]`},
		{"storage3", "mlx5_0 Port 2", `"storage3 mlx5_0"[2]`},
		{"storage3", "mlx5_0/2", `"storage3 mlx5_0"[2]`},
		{"storage_3", "7", "storage_3[7]"},
		{"gateway,_the_3._of_them", "P1", `"gateway, the 3. of them"[1]`},
		{"MT0000 ConnectX0   Some Vendor", "1", `"MT0000 ConnectX0   Some Vendor" is the name of 6 nodes; want a GUID, like 0x`},
		{"leaf-02", "cadabra", `"cadabra" is no port of the switch "leaf-02"; want one like "Port 21"`},
		{"leaf-02", "Port 300", `"Port 300" is no port of the switch "leaf-02"`},
		{"node3-1", "ibp99s0f0", "node3-1 ibp99s0f0[1]"},
		{"new-leaf", "Port 12", "new-leaf[12]"},
		{"new-leaf", "1/7/2", "new-leaf[14]"},
		{"new-dir", "Blade 3_Port 1/2", "new-dir/L3/U1[2]"},
	} {
		s, err := b.resolve(End{Device: c.device, Port: c.port})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case int(s.node) < f.NumNodes():
			got = f.PortName(f.Port(s.node, s.num))
		default:
			got = fmt.Sprintf("%s[%d]", b.node(s.node).name, s.num)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %s, want %s", c.device, c.port, got, c.want)
		}
	}
}

// differ is the lines of a verdict on a site, of its plan with lines replaced and added.
func differ(t *testing.T, f *fabric.Fabric, add string, replace ...string) ([]string, *Verdict) {
	t.Helper()
	var b strings.Builder
	short.Check(t, Write(&b, f, NDT))
	text := b.String()
	for i := 0; i < len(replace); i += 2 {
		short.Contains(t, text, replace[i], "no")
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	p := short.Must(Parse("plan", []byte(text+add), false))(t)
	e, err := Bind(f, p)
	if err != nil {
		return []string{err.Error()}, nil
	}
	r := cabling.Check(f, cabling.Options{Expected: e.Fabric, Invented: e.Invented})
	v, findings := e.Judge(r)
	var lines []string
	for _, m := range v.Miswired {
		lines = append(lines, "miswired: "+m.Expected.Cable+" is "+m.Actual.Cable+": "+m.Mend)
	}
	for _, c := range v.MissingInFabric {
		lines = append(lines, "missing in the fabric: "+c.Cable)
	}
	for _, c := range v.MissingInPlan {
		lines = append(lines, "missing in the plan: "+c.Cable)
	}
	for _, x := range append(r.Findings, findings...) {
		if x.Rule != cabling.DuplicateName {
			lines = append(lines, x.Rule+": "+x.Message)
		}
	}
	return lines, v
}

// Plans that want another fabric say what differs, and how to mend it.
func TestVerdict(t *testing.T) {
	f := site(t, 6, 2)
	for _, c := range []struct {
		name    string
		add     string
		replace []string
		want    []string
	}{
		{"two hosts exchanged", "", []string{"Node0-0,Node0-0 ibp11s0f0,leaf-00", "Node#,Node0-0 ibp11s0f0,leaf-00", "Node0-1,Node0-1 ibp11s0f0,leaf-00", "Node0-0,Node0-0 ibp11s0f0,leaf-00", "Node#,Node0-0 ibp11s0f0", "Node0-1,Node0-1 ibp11s0f0"}, []string{
			`miswired: Node0-1/Node0-1 ibp11s0f0 - leaf-00/1 is Node0-1/Node0-1 ibp11s0f0 - leaf-00/3: exchange the plugs in "MF0;leaf-00:MQM0000/U1"[1] and "MF0;leaf-00:MQM0000/U1"[3]`,
			`miswired: Node0-0/Node0-0 ibp11s0f0 - leaf-00/3 is Node0-0/Node0-0 ibp11s0f0 - leaf-00/1: exchange the plugs in "MF0;leaf-00:MQM0000/U1"[1] and "MF0;leaf-00:MQM0000/U1"[3]`,
			`swapped-hosts: "Node0-0 ibp11s0f0"[1] is at "MF0;leaf-00:MQM0000/U1"[1] and "Node0-1 ibp11s0f0"[1] at "MF0;leaf-00:MQM0000/U1"[3]: each in the place of the other; to mend: exchange the plugs in "MF0;leaf-00:MQM0000/U1"[1] and "MF0;leaf-00:MQM0000/U1"[3]`}},
		{"another port", "", []string{"leaf-00,Port 8", "LEAF-00,Port 9"}, []string{
			`miswired: gateway, the 0. of them/1 - LEAF-00/9 is gateway, the 0. of them/1 - leaf-00/8: move the plug in "MF0;leaf-00:MQM0000/U1"[8] to "MF0;leaf-00:MQM0000/U1"[9]`,
			`moved-cable: "gateway, the 0. of them"[1] leads to "MF0;leaf-00:MQM0000/U1"[8] and should lead to "MF0;leaf-00:MQM0000/U1"[9]; to mend: move the plug in "MF0;leaf-00:MQM0000/U1"[8] to "MF0;leaf-00:MQM0000/U1"[9]`}},
		{"another adapter of the host", "", []string{"Node2-1,Node2-1 ibp22s0f0", "NODE2-1,NODE2-1 ibp22s0f1"}, []string{
			`miswired: NODE2-1/NODE2-1 ibp22s0f1 - leaf-02/4 is Node2-1/Node2-1 ibp22s0f0 - leaf-02/4: move the plug in "Node2-1 ibp22s0f0"[1] to "NODE2-1 ibp22s0f1" of the same host, or correct the plan`,
			`moved-cable: "MF0;leaf-02:MQM0000/U1"[4] leads to "Node2-1 ibp22s0f0"[1] and should lead to "NODE2-1 ibp22s0f1"; to mend: move the plug in "Node2-1 ibp22s0f0"[1] to "NODE2-1 ibp22s0f1" of the same host, or correct the plan`}},
		{"that twice", "leaf-02,4,NODE2-1,ibp22s0f1\n", []string{"Node2-1,Node2-1 ibp22s0f0", "NODE2-1,NODE2-1 ibp22s0f1"}, []string{
			`miswired: NODE2-1/NODE2-1 ibp22s0f1 - leaf-02/4 is Node2-1/Node2-1 ibp22s0f0 - leaf-02/4: move the plug in "Node2-1 ibp22s0f0"[1] to "NODE2-1 ibp22s0f1" of the same host, or correct the plan`,
			`moved-cable: "MF0;leaf-02:MQM0000/U1"[4] leads to "Node2-1 ibp22s0f0"[1] and should lead to "NODE2-1 ibp22s0f1"; to mend: move the plug in "Node2-1 ibp22s0f0"[1] to "NODE2-1 ibp22s0f1" of the same host, or correct the plan`}},
		{"a switch that is not there", "n9,n9 ibp11s0f0,leaf-99,Port 9,Data\n", nil, []string{
			"missing in the fabric: n9/n9 ibp11s0f0 - leaf-99/9",
			`missing-node: switch "leaf-99" is not there, nor 1 cable of it, to nodes that are not there`,
			`missing-node: channel adapter "n9 ibp11s0f0" is not there, nor 1 cable of it, to nodes that are not there`}},
		{"a card that is not there", "leaf-00,Port 20,Dir1,Blade 09_Port 1/3,Data\n", nil, []string{
			"missing in the fabric: leaf-00/20 - Dir1/Blade 09_Port 1/3",
			`missing-node: switch "Dir1/L9/U1" is not there, nor 1 cable of it, to "MF0;leaf-00:MQM0000/U1"[20]`}},
		{"twice, the other way round", "leaf-00,Port 8,\"GATEWAY, the 0. of them\",1,Data\n", nil, nil},
		{"two cables in a port", "leaf-00,Port 8,x,Port 1,Data\n", nil, []string{
			`plan:74: leaf-00/8 has a cable already, to the other end of "gateway, the 0. of them/1 - leaf-00/8" (plan:33); want one cable for a port`}},
		{"a cable to itself", "leaf-00,Port 20,LEAF-00,20,Data\n", nil, []string{`plan:74: a cable from leaf-00/20 to itself`}},
	} {
		got, _ := differ(t, f, c.add, c.replace...)
		for i, line := range got {
			if at, rest, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(at, "plan:") {
				got[i] = at + ": " + strings.SplitN(rest, "\n", 2)[0]
			}
		}
		short.EqualList(t, got, c.want, c.name, strings.Join(got, "\n"), "want", strings.Join(c.want, "\n"))
	}
}

// Hosts that a plan has as places in racks may be any hosts, but some host must be there.
func TestPlaceholders(t *testing.T) {
	f := site(t, 2, 1)
	text := ",rack #,U height,StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height\n"
	for l, name := range []string{"LEAF-00", "LEAF-01"} {
		for i := range 3 {
			text += fmt.Sprintf("r%d,R%d,U%d,Server 1 IB Port %d,IB Port %d,U3,%s,Port %d,R9,U41\n", l, l, i, i, i, name, []int{1, 2, 9}[i])
		}
	}
	p := short.Must(Parse("plan", []byte(text), false))(t)
	e := short.Must(Bind(f, p))(t)
	v, _ := e.Judge(cabling.Check(f, cabling.Options{Expected: e.Fabric, Invented: e.Invented}))
	if v.Placeholders != 4 || v.AsPlanned != 4 || len(v.MissingInFabric) != 2 || len(v.Unjudged) != 1 || v.Unjudged[0] != "cables between switches" {
		t.Errorf("%s\n%v", v, v)
	}
}

// A row that is left out, since its port has a cable already, counts nowhere.
func TestLeftOutRows(t *testing.T) {
	f := site(t, 2, 1)
	p := short.Must(Parse("plan", []byte("leaf-00,1,leaf-01,20\nleaf-00,1,Node0-0,Node0-0 ibp99s0f0\n"), true))(t)
	e := short.Must(Bind(f, p))(t)
	short.MustEqual(t, len(e.Problems), 1, e)
	v, _ := e.Judge(cabling.Check(f, cabling.Options{Expected: e.Fabric, Invented: e.Invented}))
	if v.Planned != 1 || v.AsPlanned != 0 || len(v.Miswired)+len(v.MissingInFabric) != 1 {
		t.Errorf("%s", v)
	}
}

// Names that several nodes have, exact case, and errors of lenient plans.
func TestBindLenient(t *testing.T) {
	f := site(t, 2, 1)
	p := short.Must(Parse("plan", []byte("leaf-00,1,Node0-0,Node0-0 ibp11s0f0\nleaf-00,abra,leaf-01,cadabra\nMT0000 ConnectX0   Some Vendor,1,leaf-00,5\n"), false))(t)
	if _, err := Bind(f, p); err == nil || !strings.HasPrefix(err.Error(), `plan:2: "abra" is no port of the switch "leaf-00"`) {
		t.Error(err)
	}
	p.lenient = true
	e, err := Bind(f, p)
	if err != nil || len(e.Problems) != 2 || e.Problems[1].Line != 3 {
		t.Errorf("%v %v", err, e)
	}
}

// Names that begin with _ or a dot are not taken for other forms of names.
func TestLeadingMarks(t *testing.T) {
	b := &fabric.Builder{}
	for i, name := range []string{"_leaf", "leaf", "spine 0", ".core", "core"} {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x1000 + i), Type: fabric.Switch, NumPorts: 8, Description: name}))(t)
	}
	short.Check(t, b.Connect(0, 7, 2, 1, fabric.Link{}))
	short.Check(t, b.Connect(3, 7, 2, 2, fabric.Link{}))
	f := short.Must(b.Build())(t)
	p := short.Must(Parse("plan", []byte("_LEAF,7,spine 0,1\n.CORE,7,spine 0,2\n"), false))(t)
	if _, err := Bind(f, p); err != nil {
		t.Error(err)
	}
}

// Columns that name their end go before bare words, wherever these stand.
func TestHeaderOrder(t *testing.T) {
	for text, want := range map[string][4]int{
		"Name,Source Device,Source Port,Destination Device,Destination Port": {1, 2, 3, 4},
		"System,From,From Port,To,To Port":                                   {1, 2, 3, 4},
		"Device,Port,Start Device,Start Port,End Device,End Port":            {2, 3, 4, 5},
		"Device,Port,Device,Port":                                            {0, 1, 2, 3},
	} {
		if h, _ := headerOf(strings.Split(text, ",")); h.at != want {
			t.Errorf("%s: %v, want %v", text, h.at, want)
		}
	}
}
