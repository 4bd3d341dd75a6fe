// A module outside of ibweave: it needs nothing of it but the packages that are supported.
module example.com/own-scheme

go 1.26.0

require github.com/ibweave/ibweave v0.0.0

require (
	github.com/agnivade/levenshtein v1.2.2 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)

replace github.com/ibweave/ibweave => ../..
