"""The scores of a model in an experiment of trackio."""

import trackio

import qabias

trackio.init(project="bias")
qabias.run("bbq", model="baseline:stereotyped", config="Age", limit=400)
trackio.finish()
