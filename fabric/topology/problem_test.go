package topology

import (
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// A LID that two ports have is an error, or with TwiceLIDs a Problem that names both.
func TestTwiceLIDs(t *testing.T) {
	text := `Switch	2 "S-0000000000000010"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-0000000000000020"[1](21) 		# "a" lid 2 4xQDR
[2]	"H-0000000000000030"[1](31) 		# "b" lid 2 4xQDR

Ca	1 "H-0000000000000020"		# "a"
[1](21) 	"S-0000000000000010"[1]		# lid 2 lmc 0 "leaf" lid 1 4xQDR

Ca	1 "H-0000000000000030"		# "b"
[1](31) 	"S-0000000000000010"[2]		# lid 2 lmc 0 "leaf" lid 1 4xQDR
`
	if _, _, err := Parse("in", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "is used twice") {
		t.Errorf("got %v", err)
	}
	f, problems := short.Must2(Parse("in", []byte(text), Options{TwiceLIDs: true}))(t)
	if len(problems) != 1 || problems[0].Kind != fabric.DuplicateLID || problems[0].Line != 9 || problems[0].Node != 0x30 ||
		problems[0].Message != `LID 2, which "a"[1] has too, by line 6; taken as none` {
		t.Errorf("%+v", problems)
	}
	if got := f.PortName(f.LIDPort(2)); got != `"a"[1]` || f.MaxLID() != 2 {
		t.Errorf("LID 2 is that of %s", got)
	}
}
