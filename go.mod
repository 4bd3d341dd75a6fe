module github.com/ibweave/ibweave

go 1.26.8
