package topology

import "testing"

func FuzzParse(f *testing.F) {
	for _, test := range broken {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkParse(t, data) })
}
