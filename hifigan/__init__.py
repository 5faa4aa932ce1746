"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""
