package plan

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/internal/short"
)

// FuzzPlan reads anything as a plan and compares a site with it: an error has no result,
// nothing panics, the sums are right, and the same input gives the same verdict.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"#StartDevice,StartPort,EndDevice,EndPort,LinkType\nleaf-00,Port 11,DIR0,Blade 01_Port 1/1,Data\nNODE0-0,NODE0-0 ibp11s0f0,leaf-00,Port 1, Data\n",
		",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height\n,R1,U3,Server 1,IB Port 1,x,leaf-00,Port 1,R1,U41\n,R2,U3,Server 1,IB Port 1,x,leaf-01,Port 1/1/1,R2,U41\n",
		"leaf-00;U1/3;node0-1;U1/P1\nleaf-00;8;\"gateway, the 0. of them\";1\nstorage0;mlx5_0/2;leaf-00;7\n",
		"MQM0000 leaf-00\n P1 -> HCA1 Node0-0 ibp11s0f0/P1\n P2 -4x-10G-> HCA1 Node0-0 ibp22s0f0/P1\n\nMCS0000 Dir0\n L1/U1/P1 -> MQM0000 leaf-00 P11\n S1/P2 -> X Y 1/2/3\n",
		"0x0000000000001900,Port 1,leaf-00,Port 300\n", "a,b,c,d\n", "P1 -> A B C\n", "\ufeff\"", "a,1/1/1/1,b,0\n",
		"sep=;\nleaf-00;IB1/8;leaf-01;sw1p2\n", ";From;;To;\r\nNr;Device;Port;Device;Port\r\n1;leaf-00.a.b;8;leaf-01;9.0\r\n", "Device|Port|Device|Port\rleaf-00|8|leaf-01|9\r",
	} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		p, err := Parse("f", data, lenient)
		if err != nil {
			if p != nil {
				t.Fatal("an error and a result")
			}
			return
		}
		if !lenient && len(p.Problems) > 0 {
			t.Fatal("rows were left out")
		}
		g := site(t, 2, 1)
		e, err := Bind(g, p)
		if err != nil {
			return
		}
		judged := func(e *Expected) *Verdict {
			v, findings := e.Judge(cabling.Check(g, cabling.Options{Expected: e.Fabric, Invented: e.Invented}))
			for _, x := range findings {
				if x.Message == "" {
					t.Fatal("a finding that says nothing")
				}
			}
			return v
		}
		v := judged(e)
		if v.AsPlanned < 0 || v.AsPlanned+len(v.Miswired)+len(v.MissingInFabric) != v.Planned || v.Planned > len(p.Cables) {
			t.Fatalf("sums: %s", v)
		}
		again := short.Must(Bind(g, p))(t)
		if u := judged(again); u.String() != v.String() || !slices.Equal(u.Miswired, v.Miswired) || !slices.Equal(u.MissingInPlan, v.MissingInPlan) {
			t.Fatalf("not the same twice: %s and %s", v, u)
		}
		var text bytes.Buffer
		short.Check(t, Write(&text, e.Fabric, NDT))
	})
}
