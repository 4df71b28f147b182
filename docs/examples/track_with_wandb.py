"""The scores of a model in an experiment of Weights & Biases."""

import wandb

import qabias

with wandb.init(project="bias"):
    qabias.run("bbq", model="baseline:stereotyped", config="Age", limit=400)
